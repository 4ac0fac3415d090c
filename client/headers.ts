import { callbackError, DeckhandError } from './errors.ts';

/** Further headers of a request by name; one that is undefined is not sent. */
export type FurtherHeaders = Record<string, string | undefined>;

/** The same, or a function that returns them. */
export type HeadersOption = FurtherHeaders | (() => FurtherHeaders | Promise<FurtherHeaders>);

export async function readHeaders(headers: HeadersOption | undefined): Promise<Record<string, string>> {
  if (typeof headers !== 'function') return validHeaders(headers);
  const given = await (async () => headers())().catch((error: unknown) => {
    throw callbackError('headers', error);
  });
  return validHeaders(given);
}

/** Lower-case names. Throws for a header of the client itself, and without the value for one that can't be sent. */
export function validHeaders(headers: FurtherHeaders = {}): Record<string, string> {
  // A Headers or Map has no fields: its headers would silently not be sent.
  if (Object(headers) !== headers || Symbol.iterator in headers)
    throw new DeckhandError('headers must be a plain object of names and values.');
  const sent = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(
    sent.map(([given, value]) => {
      const name = given.toLowerCase();
      if (Object.hasOwn(OWN, name)) throw new DeckhandError(`headers can't have ${name}: ${OWN[name]}.`);
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new DeckhandError('headers has an invalid name.');
      if (typeof value === 'string' && /^[\x20-\x7e]*$/.test(value)) return [name, value];
      throw new DeckhandError(`headers: ${name} must be text of printable ASCII characters.`);
    }),
  );
}

const SET_BY_CLIENT = 'the client sets it';

/** Headers that the client sets, and the option to use instead. */
const OWN: Record<string, string> = {
  authorization: 'use token, signIn or identityToken',
  'idempotency-key': 'use idempotencyKey',
  'x-project-id': 'use projectId',
  traceparent: 'use traceparent of the client',
  tracestate: 'use traceparent of the client',
  'x-deckhand-client': SET_BY_CLIENT,
  'x-request-id': SET_BY_CLIENT,
  'content-type': SET_BY_CLIENT,
  accept: SET_BY_CLIENT,
  'last-event-id': SET_BY_CLIENT,
  'trpc-accept': SET_BY_CLIENT,
  'content-length': SET_BY_CLIENT,
  'transfer-encoding': SET_BY_CLIENT,
  connection: SET_BY_CLIENT,
};
