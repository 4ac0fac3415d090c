import type { OpenApiMeta } from 'trpc-to-openapi';

/** The REST metadata of a procedure: everything in the specification beyond input and output. */
export type RestOperation = {
  path: string;
  /** Its area of the API. */
  area: Area;
  status: 200 | 201;
  message: string;
  errors: readonly ErrorStatus[];
  bodies: Readonly<Record<ErrorStatus, ErrorBody>>;
  /** Fields that may also be sent in the query string. */
  query: readonly string[];
  /** Additional fields of the success envelope. */
  envelope: Readonly<Record<string, unknown>>;
};

export type Area = 'Authentication' | 'Operations' | 'Master templates' | 'Platform' | 'Websites';

export type ErrorStatus = 400 | 401 | 403 | 404 | 422 | 429 | 500;

/** `full` is error, message, data; `bare` has no data; `message` has nothing else; `fields` is a validation error. */
export type ErrorBody = 'full' | 'bare' | 'message' | 'fields';

export const ERROR_BODIES: RestOperation['bodies'] = {
  400: 'full',
  401: 'bare',
  403: 'bare',
  404: 'full',
  422: 'fields',
  429: 'bare',
  500: 'full',
};

const ALL_ERRORS: readonly ErrorStatus[] = [400, 401, 403, 404, 422, 429, 500];

export type RestMeta = { rest: RestOperation } & OpenApiMeta;

type Options = {
  message: string;
  summary: string;
  description?: string;
  status?: RestOperation['status'];
  /** The errors in the specification; by default all. */
  errors?: readonly ErrorStatus[];
  /** Error bodies that differ from the usual ones. */
  bodies?: Partial<RestOperation['bodies']>;
  query?: readonly string[];
  envelope?: Record<string, unknown>;
};

/** Gives a procedure a REST path; without it, a procedure is only available over RPC. */
export function rest(path: `/${string}`, options: Options): RestMeta {
  const { message, summary, description, status = 200, errors = ALL_ERRORS, query = [], envelope = {} } = options;
  const area = areaOf(path);
  return {
    rest: { path, area, status, message, errors, query, envelope, bodies: { ...ERROR_BODIES, ...options.bodies } },
    openapi: {
      method: 'POST',
      path,
      summary,
      description,
      tags: [area],
      errorResponses: [],
    },
  };
}

function areaOf(path: string): Area {
  if (path.startsWith('/v1/')) return 'Authentication';
  if (path.includes('/admin/')) return 'Master templates';
  if (path.startsWith('/services/platforms/')) return 'Platform';
  return path.startsWith('/services/websites/') ? 'Websites' : 'Operations';
}
