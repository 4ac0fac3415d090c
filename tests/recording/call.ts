/** A caller: one of the demo users, signed in by an earlier call, or nobody. */
export type Who = 'nobody' | 'admin' | 'owner' | 'member' | 'viewer' | 'outsider' | 'otp';

export type Call = {
  /** Unique: the answer is recorded under it. */
  name: string;
  by: Who;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array | undefined;
  /** Whether it goes to a second service that allows one call per minute. */
  isLimited: boolean;
};

type More = {
  headers?: Record<string, string>;
  /** The content type; null for none. */
  type?: string | null;
  method?: string;
  /** What follows the path: a query, or one more segment. */
  tail?: string;
  isLimited?: boolean;
};

/** One call of a path. Text and bytes are sent as they are, everything else as JSON; undefined is no body and no content type. */
export type Row = [name: string, by: Who, body?: unknown, more?: More];

export const OPERATIONS = '/api/services/operations/v1/operations';
export const ADMIN = '/api/services/operations/v1/admin';
export const AUTHENTICATE = '/api/v1/authenticate';
export const UPGRADE_TRIAL = '/api/services/platforms/v1/subscriptions/upgrade-trial';
export const DEPRECATE = '/api/services/websites/v1/themes/versions/deprecate';

/** The calls of one path, named after it: `cards/create: only a title`. */
export const callsOf = (path: string, rows: Row[]): Call[] =>
  rows.map(([name, by, body, { headers, type = body === undefined ? null : JSON_TYPE, ...more } = {}]) => ({
    name: `${path.replace(/^.*?\/(v1\/(operations\/|admin\/)?|trpc\/)/, '')}: ${name}`,
    by,
    method: more.method ?? 'POST',
    path: path + (more.tail ?? ''),
    headers: { ...(type !== null && { 'content-type': type }), ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    isLimited: more.isLimited ?? false,
  }));

const JSON_TYPE = 'application/json';

/** Acts in another project than the caller's default one. */
export const inProject = (id: number | string): More => ({ headers: { 'x-project-id': String(id) } });

export const times = <Part>(count: number, part: (at: number) => Part) =>
  Array.from({ length: count }, (_, at) => part(at));

/** Groups with new positions: `placed([7, 2], [8, 1])`. */
export const placed = (...pairs: [id: number, position: number][]) => pairs.map(([id, position]) => ({ id, position }));

export const UNKNOWN = 2_147_483_647;
