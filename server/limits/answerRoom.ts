/** How many bytes one answer holds at most, before JSON escapes any of them (six for one at worst). */
export const LARGEST_ANSWER_BYTES = 8 * 1024 * 1024;

/** What the answers of one batch may hold together, about: all of them are kept until the last one is there. */
export type AnswerRoom = {
  /** Before a call is carried out: refuses it where the answers of others have taken all the room. */
  mustBeLeft: () => void;
  take: (answer: unknown) => void;
};

export function makeAnswerRoom(refuse: () => Error): AnswerRoom {
  let bytesLeft = LARGEST_ANSWER_BYTES;
  return {
    mustBeLeft: () => {
      if (bytesLeft <= 0) throw refuse();
    },
    take: (answer) => {
      bytesLeft -= bytesOf(answer);
    },
  };
}

const FIELD_BYTES = 20;

/** About what a value takes as JSON. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return value.length + FIELD_BYTES;
  if (typeof value !== 'object' || value === null) return FIELD_BYTES;
  let bytes = FIELD_BYTES;
  for (const part of Object.values(value)) bytes += bytesOf(part);
  return bytes;
}
