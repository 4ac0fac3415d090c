/** Starts the app. While versions change, a file of it may be on no node any more: the page is then loaded again, once. */

const app = /** @type {HTMLMetaElement} */ (document.querySelector('meta[name="deckhand-app"]')).content;

/** @param {unknown} error */
async function reloadOnce(error) {
  console.warn(error);
  // Without a connection, the browser's own error page would replace this one.
  const isReachable = await fetch('/health/live').then(
    ({ ok }) => ok,
    () => false,
  );
  if (isReachable && sessionStorage.getItem('deckhand.reloaded') !== app) {
    sessionStorage.setItem('deckhand.reloaded', app);
    return location.reload();
  }
  const text = 'A part of this page could not be loaded. Check your connection, and reload the page.';
  document.body.append(
    Object.assign(document.createElement('p'), { className: 'failure', role: 'alert', textContent: text }),
  );
}

addEventListener('vite:preloadError', (event) => {
  event.preventDefault();
  reloadOnce(event);
});
import(app).catch(reloadOnce);
