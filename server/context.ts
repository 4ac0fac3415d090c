import type { Role } from '../shared/user.ts';
import type { BulkPace } from './database/bulk.ts';
import type { Db } from './database/query.ts';
import type { AnswerRoom } from './limits/answerRoom.ts';
import type { FairQueue } from './limits/fairQueue.ts';
import type { Guessing } from './limits/guessing.ts';
import type { Log } from './log.ts';
import type { PaymentProvider } from './payments/provider.ts';
import type { SecretBox } from './security/secretBox.ts';
import type { Tokens } from './security/tokens.ts';

/** What a procedure is given: the database, the tools that it needs, and who is calling. */
export type Context = {
  db: Db;
  /** How sync and push cut their work into steps. */
  bulkPace: BulkPace;
  /** Whether an index serves the search for text in cards. */
  hasSearchIndex: boolean;
  log: Log;
  tokens: Tokens;
  guessing: Guessing;
  secretBox: SecretBox;
  /** Absent where payments are not set up. */
  payments: PaymentProvider | undefined;
  /** Where people reach the service. */
  publicUrl: string;
  /** Where the call comes from: an IP address in its one spelling, or what else there is to say. */
  address: string;
  /** Users take turns in it, so that none of them can fill the pool of connections. */
  queue: FairQueue;
  /** For the answers of a batch, which are kept until the last one is there; absent where a call travels alone. */
  answerRoom: AnswerRoom | undefined;
  /** Whether the node is about to end: long work stops between two steps. */
  isStopping: () => boolean;
  /** Absent while there is no genuine token. */
  caller: Caller | undefined;
  /** How many calls of this request the rate limit still allows. */
  callsAllowed: number;
  retryAfterSeconds: number;
};

/** What is enough for those functions of the domain that the command line calls as well. */
export type Provisioning = Pick<Context, 'db' | 'address'>;

/** Who is calling. */
export type Caller = {
  id: number;
  sessionId: string;
  superadmin: boolean;
  superadmin_billing: boolean;
  /** The project to act in; undefined if the user belongs to no project, or not to the one that was asked for. */
  project: ActingProject | undefined;
};

/** Without a role, the caller may only handle billing there. */
export type ActingProject = { id: number; platform_id: number; role: Role | null };

/** A caller who may act in a project. */
export type ProjectCaller = Caller & { project: ActingProject };

/** The context of a procedure that requires a sign-in, and of one that acts in a project. */
export type SignedInContext = Context & { caller: Caller };
export type ProjectContext = Context & { caller: ProjectCaller };
