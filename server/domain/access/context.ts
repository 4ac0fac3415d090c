import type { EventSurface } from '../../../shared/event.ts';
import type { Role } from '../../../shared/user.ts';
import type { BulkPace } from '../../database/bulk.ts';
import type { Db } from '../../database/query.ts';
import type { Replicas } from '../../database/replicas.ts';
import type { Written } from '../../database/writePosition.ts';
import type { AttemptLimit } from '../../limits/attemptLimit.ts';
import type { ResponseBudget } from '../../limits/responseBudget.ts';
import type { PaymentProvider } from '../../payments/provider.ts';
import type { FairQueue } from '../../runtime/fairQueue.ts';
import type { Log } from '../../runtime/log.ts';
import type { SecretBox } from '../../security/secretBox.ts';
import type { Tokens } from '../../security/tokens.ts';
import type { EventHub } from '../event/following.ts';

/** The context of a procedure: the database, the services, and the caller. */
export type Context = {
  db: Db;
  /** Undefined without replicas. */
  replicas: Replicas | undefined;
  /** How sync and push split their work into steps. */
  bulkPace: BulkPace;
  /** Whether text search in cards has an index. */
  hasSearchIndex: boolean;
  log: Log;
  tokens: Tokens;
  attemptLimit: AttemptLimit;
  secretBox: SecretBox;
  /** Undefined without payments. */
  payments: PaymentProvider | undefined;
  /** The public address of the service. */
  publicUrl: string;
  /** The source of the call: a canonical IP address, or another text such as "command line". */
  address: string;
  /** For how long events can be read. */
  eventsKeptDays: number;
  /** After how many days the secret of an API key ends, unless it is rotated; undefined for no limit. */
  keyMaxDays: number | undefined;
  /** Hosts that webhooks may call although they are not on the internet. */
  webhookAllowedHosts: readonly string[];
  /** Hands events to those who follow them. */
  eventHub: EventHub;
  /** How the call came, for its events. */
  origin: Origin;
  /** A fair queue between users, so that none of them can occupy the whole connection pool. */
  queue: FairQueue;
  /** Limits the memory of responses; undefined on the command line. */
  responseBudget: ResponseBudget | undefined;
  /** The idempotency keys of the request; undefined without the header. */
  idempotency: IdempotencyKeys | undefined;
  /** The key of this call, if the procedure uses it. */
  idempotencyKey?: string | undefined;
  /** What the `prepare` step of a call with an idempotency key returned, before its transaction. */
  prepared?: { result: unknown } | undefined;
  /** Whether the node is stopping: long work then stops between two steps. */
  isStopping: () => boolean;
  /** Undefined without a valid token. */
  caller: Caller | undefined;
  /** What was decided about the caller's access; procedures without a decision check it themselves. */
  access: AccessDecisions | undefined;
  /** How many calls of this request the rate limit still allows. */
  callsAllowed: number;
  retryAfterSeconds: number;
  /** Counts further calls for the work, or throws the 429 before it begins. Undefined without a rate limit. */
  countFurther?: (<Result>(calls: number, work: () => Promise<Result>) => Promise<Result>) | undefined;
};

export type Origin = { surface: EventSurface; requestId: string | null };

/** The header `Idempotency-Key` of a request, and what came of it. */
export type IdempotencyKeys = {
  /** By the index in the batch: the key of a call, or the 400 if it is invalid. */
  keys: readonly (string | Error | undefined)[];
  /** The indexes of calls that got the response of an earlier one. */
  replayed: number[];
};

/** The part of the context that provisioning functions use. */
export type ProvisioningContext = Pick<Context, 'db' | 'address' | 'prepared' | 'origin' | 'caller'>;

/** The decision about each procedure, by name: the 401 or 403, or undefined if the caller may call it. */
export type AccessDecisions = ReadonlyMap<string, Error | undefined>;

/** Who is calling. */
export type Caller = {
  /** Null for the operator at the command line, who has no account. */
  id: number | null;
  sessionId: string;
  superadmin: boolean;
  superadmin_billing: boolean;
  /** The project of X-Project-Id; without it the default one, for calls that name no row. Undefined if there is none. */
  project: ActingProject | undefined;
  /** Whether X-Project-Id was sent: the call then acts in no other project. */
  isProjectChosen: boolean;
  /** The role in that project or, if it is too low for the call, the highest in any project. */
  highestRole: Role | null;
  /** Calls a minute, instead of the default rate limit. */
  ownRateLimit?: number | null;
  /** Set for a call with an API key instead of a token. */
  key?: CallerKey;
  /** Set with replicas: how far the caller has written. */
  written?: Written;
};

/** The key of a call: it narrows the rights of its user. */
export type CallerKey = {
  id: number;
  /** The hash of the secret that was sent; after a rotation, that may be the previous one. */
  secretHash: string;
  scopes: readonly string[];
  /** The only project that it acts in; null for all of its user. */
  projectId: number | null;
  /** Whether X-Project-Id selects another project. */
  isElsewhere: boolean;
  /** Whether its use in this minute is not stored yet. */
  isUseDue: boolean;
};

/** Without a role, the caller may only handle billing there. */
export type ActingProject = { id: number; platform_id: number; role: Role | null };

/** A caller with an account. */
export type AccountCaller = Caller & { id: number };

/** A caller with an API key. */
export type KeyCaller = AccountCaller & { key: CallerKey };

/** A caller who may act in projects where they have this role. */
export type ProjectCaller = Caller & {
  neededRole: Role;
  /** Collected for a call with an idempotency key: a repeat checks the access there again. */
  actedIn?: ActedIn[] | undefined;
};

/**
 * Where a call acted: in a project, with the text of the 403 where it is not that of the selected project, and with the row of a
 * call with many; or on a platform.
 */
export type ActedIn =
  | { project_id: number; refusal?: string; row?: { list: string; at: number } }
  | { platform_id: number };

/** The contexts of procedures that require a sign-in, that act on the caller's own account or key, and that act in a project. */
export type SignedInContext = Context & { caller: Caller };
export type AccountContext = Context & { caller: AccountCaller };
export type KeyContext = Context & { caller: KeyCaller };
export type ProjectContext = Context & { caller: ProjectCaller };
