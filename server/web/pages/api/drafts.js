import { byId } from './dom.js';
import { currentSession, followSession } from './session.js';

/** What people wrote into the forms, by operation. @type {Map<string, string[]>} */
const texts = new Map();
followSession(byId('content'), () => {
  if (!currentSession()) texts.clear();
});

/**
 * Fills the inputs with what was written into them before another operation was opened.
 * @param {string} operationId
 * @param {(HTMLInputElement | HTMLTextAreaElement)[]} inputs
 */
export function keepTexts(operationId, inputs) {
  for (const [index, input] of inputs.entries()) {
    input.value = texts.get(operationId)?.[index] ?? input.value;
    const keep = () =>
      texts.set(
        operationId,
        inputs.map(({ value }) => value),
      );
    input.addEventListener('input', keep);
  }
}
