/** The maximum size of one answer, before JSON escaping (at worst six bytes for one). */
export const LARGEST_ANSWER_BYTES = 8 * 1024 * 1024;

/** The approximate size limit of all answers of a batch, which stay in memory until the last one is done. */
export type AnswerBudget = {
  /** Before a call: throws if the other answers have used up the limit. */
  mustNotBeSpent: () => void;
  spend: (answer: unknown) => void;
};

export function makeAnswerBudget(refuse: () => Error): AnswerBudget {
  let bytesLeft = LARGEST_ANSWER_BYTES;
  return {
    mustNotBeSpent: () => {
      if (bytesLeft <= 0) throw refuse();
    },
    spend: (answer) => {
      bytesLeft -= bytesOf(answer);
    },
  };
}

const FIELD_BYTES = 20;

/** The approximate size of a value as JSON. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return value.length + FIELD_BYTES;
  if (typeof value !== 'object' || value === null) return FIELD_BYTES;
  let bytes = FIELD_BYTES;
  for (const part of Object.values(value)) bytes += bytesOf(part);
  return bytes;
}
