/** What callers of a seed sent and saw, and what the service told of it afterwards. */
export type History = {
  calls: Call[];
  /** The feed after the last call, in its order. */
  events: FeedEvent[];
  /** The rows after the last call, from the primary; without deleted ones. */
  rows: Shown[];
  webhooks: Delivered[];
  /** Rows that are older than the feed, with their versions before it. */
  older: ReadonlyMap<string, number>;
  /** Copies of templates: a sync or a rollout changes them without naming them. */
  copies: ReadonlySet<string>;
};

export type Fields = Record<string, unknown>;

export type Call = {
  /** Its X-Request-Id. */
  id: string;
  /** Who sent it: one call after the other. */
  session: string;
  operation: string;
  /** Moments, in the order of time. */
  begun: number;
  ended: number;
  /** Unknown: no answer, or a 5xx. It may have happened, even later. */
  outcome: 'done' | 'refused' | 'unknown';
  /** Attempts of the same call have the same idempotency key. */
  key?: string;
  /** One of several attempts: its answer may be old. */
  mayBeReplayed?: boolean;
  writes: Write[];
  shown: Shown[];
  /** Rows that the answer says are not there. */
  missing: string[];
};

export type Write = {
  /** The row, such as `card 7`. A new row has no id before the answer, so it is undefined if the answer got lost. */
  row?: string;
  verb: 'created' | 'updated' | 'moved' | 'deleted' | 'restored' | 'read';
  /** The number of the version that it required. */
  condition?: number;
  /** What the row has afterwards. */
  fields: Fields;
  /** It may leave the row as it was, and has no event then. */
  mayBeVoid?: boolean;
  /** The answer may refuse it without the others: nobody knows if the answer was lost. */
  mayBeRefused?: boolean;
  /** The row was refused, though not the call. */
  isRefused?: boolean;
};

/** A row as an answer shows it. */
export type Shown = { row: string; version?: number; fields: Fields };

export type FeedEvent = {
  id: string;
  type: string;
  request_id: string | null;
  subject_id: number | null;
  data: { version?: number; ids?: number[] };
};

/** The ids of events in the order of their arrival, with repeats; `types` is null for all. */
export type Delivered = { name: string; types: string[] | null; arrived: string[] };

export type Anomaly = { name: AnomalyName; text: string };
type AnomalyName =
  | 'lost update'
  | 'wrong value'
  | 'differing answers'
  | 'stale answer'
  | 'version not raised'
  | 'older read'
  | 'own write not read'
  | 'missing row'
  | 'repeated version'
  | 'missing event'
  | 'event without change'
  | 'events out of order'
  | 'answer and event differ'
  | 'partial write'
  | 'executed twice'
  | 'event of a refused call'
  | 'event of nobody'
  | 'wrong delivery';

/** The rows that an event names besides its subject: each has one version more. */
export function mentionsOf({ type, data }: FeedEvent): string[] {
  const [noun] = type.split('.');
  const named = /^(tag\.(deleted|restored)|member\.)/.test(type) ? 'card' : noun;
  return (data.ids ?? []).map((id) => `${named} ${id}`);
}

/** The row whose version an event has; undefined for an event without one. */
export const subjectOf = ({ type, subject_id, data }: FeedEvent): string | undefined =>
  data.version === undefined || subject_id === null ? undefined : `${type.split('.')[0]} ${subject_id}`;

/** A call in words. */
export const inWords = ({ operation, session, begun, ended, outcome, id }: Call): string =>
  `${operation} of ${session} (${id}, ${begun} to ${ended}, ${outcome})`;
