import { tooManyRequests } from '../../shared/errors.ts';
import { JsonText } from '../runtime/jsonText.ts';
import type { UnsentResponse } from './unsentResponses.ts';

/** The maximum size of one response as JSON, and of all responses of a batch, which stay in memory until the last one is done. */
export const LARGEST_RESPONSE_BYTES = 8 * 1024 * 1024;

/** The size limits of the responses to one request. */
export type ResponseBudget = {
  /** Before a call: throws if the other responses of the batch, or the caller's unread ones, have used up the limit. */
  mustNotBeSpent: () => void;
  spend: (response: unknown) => void;
};

export function makeResponseBudget(unsent: UnsentResponse | undefined, calls: number): ResponseBudget {
  let bytes = 0;
  return {
    mustNotBeSpent: () => {
      unsent?.mustBeFew();
      if (calls > 1 && bytes >= LARGEST_RESPONSE_BYTES) throw batchTooLarge();
    },
    spend: (response) => {
      bytes += bytesOf(response);
      unsent?.setBytes(bytes);
    },
  };
}

const batchTooLarge = () =>
  tooManyRequests('The answers of this batch are too large. Retry the remaining calls.', 1, 'batch_answers_too_large');

const FIELD_BYTES = 20;

/** For shorter texts, counting escapes is not worth the time. */
const SHORTEST_COUNTED_TEXT = 1000;

/** The approximate size of a value as JSON. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return textBytesOf(value) + FIELD_BYTES;
  if (typeof value !== 'object' || value === null) return FIELD_BYTES;
  if (value instanceof Date) return FIELD_BYTES;
  if (value instanceof JsonText) return value.pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  let bytes = FIELD_BYTES;
  if (Array.isArray(value)) for (const part of value) bytes += bytesOf(part);
  // Four times as fast as a list of the values.
  else for (const name in value) bytes += bytesOf((value as Record<string, unknown>)[name]);
  return bytes;
}

const textBytesOf = (text: string) =>
  text.length < SHORTEST_COUNTED_TEXT ? text.length : Buffer.byteLength(JSON.stringify(text));
