import type { EventSurface } from '../../../shared/event.ts';
import type { Role } from '../../../shared/user.ts';
import type { BulkPace } from '../../database/bulk.ts';
import type { Db } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import type { Written } from '../../database/writePosition.ts';
import type { AttemptLimit } from '../../limits/attemptLimit.ts';
import type { MailLimit } from '../../limits/mailLimit.ts';
import type { PaymentProvider } from '../../payments/provider.ts';
import type { FairQueue } from '../../runtime/fairQueue.ts';
import type { Log } from '../../runtime/log.ts';
import type { IdentityProvider } from '../../security/identityProvider.ts';
import type { KeySets } from '../../security/keySets.ts';
import type { SecretBox } from '../../security/secretBox.ts';
import type { Tokens } from '../../security/tokens.ts';
import type { EventHub } from '../event/following.ts';

/** What a domain function needs of its call. */
export type Context = {
  db: Db;
  /** Undefined without a valid token. */
  caller: Caller | undefined;
  /** How the call came, for its events. */
  origin: Origin;
  log: Log;
  services: NodeServices;
  /** Counts further calls for the work, or throws the 429 before it begins. Undefined without a rate limit. */
  countMore?: (<Result>(calls: number, work: () => Promise<Result>) => Promise<Result>) | undefined;
  /** What the `prepare` step of a call with an idempotency key returned, before its transaction. */
  prepared?: { result: unknown } | undefined;
};

/** What the calls of a node share. Few functions need one of these: their types name it. */
export type NodeServices = {
  /** How sync and push split their work into steps. */
  bulkPace: BulkPace;
  /** Whether text search in cards has an index. */
  hasSearchIndex: boolean;
  tokens: Tokens;
  attemptLimit: AttemptLimit;
  mailLimit: MailLimit;
  /** Of `auth.exchange`, apart: a job with a wrong token must not keep people of its network from signing in. */
  exchangeLimit: AttemptLimit;
  keySets: KeySets;
  secretBox: SecretBox;
  /** Whether mails are sent, or shown in the terminal of the demo. */
  sendsMail: boolean;
  /** Where people can sign in, by name. */
  identityProviders: ReadonlyMap<string, IdentityProvider>;
  /** Undefined without payments. */
  payments: PaymentProvider | undefined;
  /** For how long events can be read. */
  eventsKeptDays: number;
  /** After how many days the secret of an API key ends, unless it is rotated; undefined for no limit. */
  keyMaxDays: number | undefined;
  /** Hosts that webhooks may call although they are not on the internet. */
  webhookAllowedHosts: readonly string[];
  /** Hosts of issuers that may be asked for their keys although they are not on the internet. */
  identityAllowedHosts: readonly string[];
  /** Hands events to those who follow them. */
  eventHub: EventHub;
  /** A fair queue between users, so that none of them can occupy the whole connection pool. */
  queue: FairQueue;
  /** Whether the node is stopping: long work then stops between two steps. */
  isStopping: () => boolean;
};

/** A context with these services of the node. */
export type With<Names extends keyof NodeServices> = { services: Pick<NodeServices, Names> };

export type Origin = {
  surface: EventSurface;
  requestId: string | null;
  /** A canonical IP address, or another text such as "command line". */
  address: string;
  /** The address of the service, for links. */
  serviceUrl: string;
};

/** The part of the context that provisioning functions use. */
export type ProvisioningContext = Pick<Context, 'db' | 'prepared' | 'origin' | 'caller'> &
  With<'sendsMail' | 'keyMaxDays'>;

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
  /** What the database has of the caller; undefined at the command line. */
  found?: FoundCaller;
  /** Set for a caller who was remembered: a statement confirms it. */
  unconfirmed?: Unconfirmed;
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

/** What the database has of a caller. */
export type FoundCaller = Pick<
  Row<'users'>,
  'id' | 'superadmin' | 'superadmin_billing' | 'rate_limit_per_minute' | 'default_project_id'
> & {
  project_id: Row<'projects'>['id'] | null;
  platform_id: Row<'projects'>['platform_id'] | null;
  role: Row<'members'>['role'] | null;
  highest_role: Row<'members'>['role'] | null;
  /** Only with replicas. */
  write_epoch?: string | null;
  write_position?: number;
};

export type FoundKey = Pick<Row<'api_keys'>, 'scopes'> & {
  key_id: Row<'api_keys'>['id'];
  key_project_id: Row<'api_keys'>['project_id'];
  is_use_due: boolean;
};

/** How statements confirm a remembered caller (`confirmation.ts`). */
export type Unconfirmed = { isKey: boolean; values: object; isConfirmed: boolean };

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
