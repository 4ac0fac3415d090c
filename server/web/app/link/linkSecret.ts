import { signal } from '@preact/signals';

/**
 * The secret of the link that opened the page; empty without one. It is taken out of the address at once, so that it is in no
 * history, and kept in memory alone. Programs that scan mails open links, so a page uses it only when its button is pressed.
 */
export const linkSecret = signal(takeSecret());

// Another link was pasted into the same tab.
addEventListener('hashchange', () => {
  if (location.hash) linkSecret.value = takeSecret();
});

function takeSecret(): string {
  const secret = location.hash.slice(1);
  if (secret) history.replaceState(null, '', location.pathname);
  return secret;
}
