import { isDeepStrictEqual } from 'node:util';
import type { OpenApiDocument, Operation, Response } from './shape.ts';

/** Errors that nearly all operations have in the same words. */
const NAMES: Record<string, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  412: 'PreconditionFailed',
  429: 'TooManyRequests',
  500: 'InternalError',
};

/** An operation that has all of them. */
const USUAL = '/services/operations/v1/operations/boards/update';

/** Writes these errors once, and refers to them: they would be a third of the document. */
export function shareResponses({ paths, components }: OpenApiDocument): void {
  const usual = paths[USUAL]!.post.responses;
  const shared = Object.fromEntries(Object.entries(NAMES).map(([status, name]) => [name, usual[status]!]));
  components.responses = shared;
  for (const { post, get } of Object.values(paths)) {
    const { responses } = (get ?? post) as Operation;
    for (const [status, name] of Object.entries(NAMES))
      if (isDeepStrictEqual(responses[status], shared[name]))
        responses[status] = { $ref: `#/components/responses/${name}` } as Response;
  }
}

/** The responses of an operation, shared ones included. */
export function responsesOf(
  { components }: Pick<OpenApiDocument, 'components'>,
  { responses }: Pick<Operation, 'responses'>,
) {
  const shared = components.responses as Record<string, Response>;
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      response.$ref === undefined ? response : shared[response.$ref.split('/').at(-1)!]!,
    ]),
  );
}
