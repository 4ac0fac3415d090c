import type { OpenApiMeta } from 'trpc-to-openapi';
import type { Failure } from '../../shared/errors.ts';

/** The REST metadata of a procedure: everything about its path beyond input and output. */
export type RestOperation = {
  path: string;
  /** Its heading in the document: the area of a specified operation, the noun of any other. */
  tag: string;
  /** Whether it belongs to the specified interface, which must not change. */
  isSpecified: boolean;
  status: 200 | 201;
  message: string;
  /** The message for results that need another one. */
  messageFor: ((result: never) => string | undefined) | undefined;
  errors: readonly ErrorStatus[];
  bodies: Readonly<Record<ErrorStatus, ErrorBody>>;
  /** Fields that may also be sent in the query string. */
  query: readonly string[];
  /** Additional fields of the success envelope. */
  envelope: Readonly<Record<string, unknown>>;
};

export type ErrorStatus = 400 | 401 | 403 | 404 | 412 | 422 | 429 | 500;

/** `full` is error, message, data; `bare` has no data; `message` has nothing else; `fields` is a validation error. */
export type ErrorBody = 'full' | 'bare' | 'message' | 'fields';

export const ERROR_BODIES: RestOperation['bodies'] = {
  400: 'full',
  401: 'bare',
  403: 'bare',
  404: 'full',
  412: 'full',
  422: 'fields',
  429: 'bare',
  500: 'full',
};

export function errorBody(kind: ErrorBody, { message, errors }: Pick<Failure, 'message' | 'errors'>): object {
  switch (kind) {
    case 'full':
      return { error: true, message, data: [] };
    case 'bare':
      return { error: true, message };
    case 'message':
      return { message };
    case 'fields':
      return { message, errors };
  }
}

const ALL_ERRORS: readonly ErrorStatus[] = [400, 401, 403, 404, 412, 422, 429, 500];

type Options = {
  message: string;
  summary: string;
  description: string;
  status?: RestOperation['status'];
};

type SpecifiedOptions = Options & {
  messageFor?: RestOperation['messageFor'];
  /** The errors in the specification; by default all. */
  errors?: readonly ErrorStatus[];
  /** Error bodies that differ from the usual ones. */
  bodies?: Partial<RestOperation['bodies']>;
  query?: readonly string[];
  envelope?: Record<string, unknown>;
};

/** What a router says about the REST path of a procedure; `withErrors` completes it. */
export type RestMeta = {
  rest: Omit<RestOperation, 'errors'> & {
    errors: readonly ErrorStatus[] | undefined;
    namesRow: boolean | undefined;
  };
} & OpenApiMeta;

/** Gives a procedure its path of the specification. Statuses, bodies and fields must not change. */
export function specified<Procedure extends Describable>(
  procedure: Procedure,
  path: `/${string}`,
  options: SpecifiedOptions,
): Procedure {
  const { errors = ALL_ERRORS, bodies, query = [], envelope = {}, messageFor } = options;
  const specified = { isSpecified: true, errors, query, envelope, messageFor, bodies: { ...ERROR_BODIES, ...bodies } };
  return procedure.meta(metaOf(path, areaOf(path), options, specified)) as Procedure;
}

/** Gives a procedure a path beyond the specification, of the same kind: with the usual bodies, and the errors that can happen. */
export function rest<Procedure extends Describable>(
  procedure: Procedure,
  path: `/${string}`,
  { namesRow, errors, ...options }: RestOptions,
): Procedure {
  return procedure.meta(metaOf(path, headingOf(path), options, { namesRow, errors })) as Procedure;
}

type RestOptions = Options & {
  /** Whether it acts on a row that may not exist; if not given, whether its input has an id. */
  namesRow?: boolean;
  /** For those that need no sign-in, and have other errors than usual. */
  errors?: readonly ErrorStatus[] | undefined;
};

/** A procedure that is being built; metadata doesn't change its type. */
type Describable = { meta(meta: RestMeta): unknown };

function metaOf(
  path: `/${string}`,
  tag: string,
  { message, summary, description, status = 200 }: Options,
  more: Partial<RestMeta['rest']>,
): RestMeta {
  const usual = {
    isSpecified: false,
    errors: undefined,
    namesRow: undefined,
    query: [],
    envelope: {},
    messageFor: undefined,
  };
  return {
    rest: { ...usual, bodies: ERROR_BODIES, ...more, path, tag, status, message },
    openapi: { method: 'POST', path, summary, description, tags: [tag], errorResponses: [] },
  };
}

/** The errors of an operation that is not specified: those that its access and its input can cause. */
export function withErrors(
  { namesRow, errors, ...rest }: RestMeta['rest'],
  { needsSignIn, hasId, requiresVersions }: Record<'needsSignIn' | 'hasId' | 'requiresVersions', boolean>,
): RestOperation {
  const isPossible: Partial<Record<ErrorStatus, boolean>> = {
    401: needsSignIn,
    // Also for what every user may call: an API key may lack the scope.
    403: needsSignIn,
    404: namesRow ?? hasId,
  };
  const isListed = (status: ErrorStatus) => errors?.includes(status) ?? isPossible[status] ?? true;
  // Only for callers who send If-Match or `if_version`, so also where the specification does not name it.
  const has = (status: ErrorStatus) => (status === 412 ? requiresVersions : isListed(status));
  return { ...rest, errors: ALL_ERRORS.filter(has) };
}

function areaOf(path: string): string {
  if (path.startsWith('/v1/')) return 'Authentication';
  if (path.includes('/admin/')) return 'Master templates';
  if (path.startsWith('/services/platforms/')) return 'Platform';
  return path.startsWith('/services/websites/') ? 'Websites' : 'Operations';
}

/** `/services/operations/v1/admin/master-boards/get` is listed under `Master boards`. */
function headingOf(path: string): string {
  const [, noun = ''] = /\/v1\/(?:operations\/|admin\/)?([a-z-]+)\//.exec(path) ?? [];
  if (noun === 'auth') return 'Sign-in';
  return noun.charAt(0).toUpperCase() + noun.slice(1).replaceAll('-', ' ');
}
