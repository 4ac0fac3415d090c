/**
 * A button that copies a text to the clipboard.
 * @param {() => string} text
 */
export function copyButton(text) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    button.textContent = await copy(text());
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2000);
  });
  return button;
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return 'Copied';
  } catch {
    // Browsers have no clipboard on plain HTTP, except for localhost.
    return 'Select it, and press Ctrl+C';
  }
}
