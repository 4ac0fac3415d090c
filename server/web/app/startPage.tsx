import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { address } from './address.ts';
import { Button, set } from './parts/button.tsx';
import { Dialog } from './parts/dialog.tsx';
import { sayFailure } from './parts/message.tsx';
import { signIn } from './service.ts';
import { SignInForm, useDemoUsers } from './signIn.tsx';

/** For visitors: what this is, and one way in. */
export function StartPage() {
  const users = useDemoUsers();
  const isAsking = useSignal(false);
  const isBusy = useSignal(false);
  useEffect(() => {
    document.title = 'Deckhand';
  }, []);
  const enter = async (user: { email: string; password: string }) => {
    if (isBusy.peek()) return;
    isBusy.value = true;
    await signIn({ email: user.email, password: user.password }).catch((error) => sayFailure(error));
    isBusy.value = false;
  };
  const demo = users.value ?? [];
  const main = demo.find(({ name }) => /owner/i.test(name)) ?? demo[0];
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href="/">
          Deckhand
        </a>
        <nav aria-label="Pages">
          <a href="/docs">API</a>
          <a href="/docs/guides">Guides</a>
        </nav>
        <Button as="quiet" onClick={set(isAsking, true)}>
          Sign in
        </Button>
      </header>
      <main id="content" class="start" tabIndex={-1}>
        <div>
          <h1>Task boards for every project, from one template.</h1>
          {address.value.area !== 'start' && <p class="hint">Sign in to open this address.</p>}
          {main && (
            <div aria-busy={isBusy}>
              <p>
                <Button as="main" onClick={() => enter(main)}>
                  Open the demo board
                </Button>
              </p>
              <p class="hint">
                Or look around as{' '}
                {demo.map((user) => (
                  <Button key={user.email} as="link" title={user.email} onClick={() => enter(user)}>
                    {user.name}
                  </Button>
                ))}
              </p>
            </div>
          )}
          {users.value?.length === 0 && (
            <div class="sign-in">
              <SignInForm />
              <p class="hint">
                No account yet? An operator makes the first one with <code>deckhand users create</code>; see{' '}
                <a href="/docs/guides">the guides</a>. Then invite your team in Members.
              </p>
            </div>
          )}
        </div>
        <BoardPicture />
      </main>
      {isAsking.value && (
        <Dialog title="Sign in" onClose={set(isAsking, false)}>
          <SignInForm />
        </Dialog>
      )}
    </>
  );
}

/** A board, drawn; decoration. */
const BoardPicture = () => (
  <svg class="picture" viewBox="0 0 480 300" aria-hidden="true">
    {[3, 2, 4].map((count, column) => (
      <g key={column} transform={`translate(${column * 160} 0)`}>
        <rect class="column" width="148" height="300" rx="12" />
        <rect class="line" x="14" y="16" width="64" height="10" rx="5" />
        {Array.from({ length: count }, (_, card) => (
          <g key={card} transform={`translate(10 ${42 + card * 62})`}>
            <rect class="paper" width="128" height="52" rx="8" />
            <rect class="line" x="12" y="12" width={96 - 18 * ((card + column) % 3)} height="8" rx="4" />
            <rect class={`tag-${(card + column) % 3}`} x="12" y="30" width="34" height="10" rx="5" />
            <circle class="line" cx="112" cy="36" r="7" />
          </g>
        ))}
      </g>
    ))}
  </svg>
);
