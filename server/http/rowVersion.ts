import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../../shared/errors.ts';

const TAG = /(W\/)?"([^"]*)"/g;

/**
 * The versions in the header `If-Match`, for the field `if_version`: several have commas between them. Undefined without the
 * header and for `*`, since a row that does not exist is a 404 anyway. A weak tag never matches, nor does one of another service.
 */
export function readIfMatch({ headers }: FastifyRequest): string | undefined {
  const header = headers['if-match']?.trim();
  if (header === undefined || header === '*') return undefined;
  const tags = [...header.matchAll(TAG)];
  if (tags.length === 0 || !/^[\s,]*$/.test(header.replaceAll(TAG, '')))
    throw badRequest('If-Match must be an ETag in double quotes, a list of them, or *.', 'if_match_invalid');
  const versions = tags.flatMap(([, weak, version = '']) => (weak || !/^\d+-\d+$/.test(version) ? [] : version));
  return versions.join() || NO_VERSION;
}

/** What no row has. */
const NO_VERSION = 'none';

/** Sends the version of an answer as its `ETag`, and returns the rest of the answer. */
export function sendVersion(reply: FastifyReply, answer: object): object {
  const { version, ...rest } = answer as { version?: string };
  // The answer of an earlier call may have been stored before there were versions.
  if (version !== undefined) reply.header('ETag', `"${version}"`);
  return rest;
}
