import { calls } from './service.ts';

/** What this page called, folded away: the page is also an example of the client. */
export const Calls = () => (
  <details class="calls">
    <summary>Calls</summary>
    <p class="hint">
      Everything here is done with the <a href="/docs/guides/client">typed client</a>, which you can use, too. Newest
      first.
    </p>
    <ol>
      {calls.value.map(({ id, code, outcome, hasFailed }) => (
        <li key={id}>
          <code>{code}</code> <span class={hasFailed ? 'failure' : 'hint'}>{outcome}</span>
        </li>
      ))}
    </ol>
  </details>
);
