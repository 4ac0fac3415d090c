/** Shown when no response arrived. */
export const UNREACHABLE = "Can't reach Deckhand.";

/**
 * Sends a request and reads the response. Throws an error to show if none arrives.
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
