/** For people, when no answer came. */
export const UNREACHABLE = "Can't reach Deckhand.";

/**
 * Sends a request and reads the answer. Without one, throws an error with a message for people.
 * @param {string} address
 * @param {RequestInit} [request]
 */
export async function reach(address, request) {
  try {
    const response = await fetch(address, request);
    return { response, text: await response.text() };
  } catch (cause) {
    throw new Error(UNREACHABLE, { cause });
  }
}
