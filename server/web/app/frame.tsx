import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { account, invitationCount, isSuperadmin } from './account.ts';
import { currentPlace, projectAddress } from './address.ts';
import { NewBoard } from './board/newBoard.tsx';
import { Calls } from './calls.tsx';
import { counted } from './parts/counted.ts';
import { Menu } from './parts/menu.tsx';
import { boards, canChange, canManage, project } from './project.ts';
import { ProjectPicker } from './projectPicker.tsx';
import { isConnected, pausedUntil, signOut } from './service.ts';

/** What surrounds every page: the bar, the list of boards and pages, and the calls that the page makes. */
export function Frame({ children }: { children: ComponentChildren }) {
  const isOpen = useSignal(false);
  const shown = currentPlace();
  useEffect(() => {
    isOpen.value = false;
  }, [shown]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <button
          type="button"
          class="button quiet menu"
          aria-expanded={isOpen}
          aria-controls="sidebar"
          onClick={() => {
            isOpen.value = !isOpen.peek();
          }}
        >
          Menu
        </button>
        <a class="brand" href="/">
          Deckhand
        </a>
        <ProjectPicker />
        <span class="space" />
        <AccountMenu />
      </header>
      {!isConnected.value && (
        <p class="offline" role="alert">
          No connection to the service. What you change now is not saved; the page goes on trying.
        </p>
      )}
      {pausedUntil.value && (
        <p class="offline" role="status">
          Too many calls. The page goes on by itself at {pausedUntil.value.toLocaleTimeString()}.
        </p>
      )}
      <div class="columns">
        <aside id="sidebar" class={isOpen.value ? 'sidebar open' : 'sidebar'}>
          <Sidebar />
        </aside>
        <main id="content" tabIndex={-1}>
          <div class="page">{children}</div>
          <Calls />
        </main>
      </div>
    </>
  );
}

function AccountMenu() {
  const name = account.value?.name ?? '';
  return (
    <Menu label={`Account of ${name}`} class="icon who" content={<Initials name={name} />}>
      <p class="hint">{account.value?.email}</p>
      <a href="/account">{`Account${invitationText()}`}</a>
      <a href="/account/keys">API keys</a>
      <a href="/docs">API page</a>
      <a href="/docs/guides">Guides</a>
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </Menu>
  );
}

function invitationText(): string {
  const count = invitationCount.value;
  return count === 0 ? '' : ` · ${counted(count, 'invitation')}`;
}

/** The first letters of up to two words, in a colour of that name. */
export function Initials({ name }: { name: string }) {
  const letters = name
    .split(/[\s.@_-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase());
  const hue = [...name].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 360, 7);
  return (
    <span class="initials" style={{ '--hue': hue }} title={name} aria-hidden="true">
      {letters.join('') || '?'}
    </span>
  );
}

function Sidebar() {
  const id = project.value?.id;
  return (
    <>
      {id !== undefined && <BoardList projectId={id} />}
      {id !== undefined && (
        <nav aria-label="Project">
          <h2>Project</h2>
          <ul>
            <Entry href={projectAddress(id, 'due')}>Due and mine</Entry>
            <Entry href={projectAddress(id, 'tags')}>Tags</Entry>
            {canChange.value && <Entry href={projectAddress(id, 'trash')}>Trash</Entry>}
            <Entry href={projectAddress(id, 'members')}>Members</Entry>
            <Entry href={projectAddress(id, 'templates')}>Templates</Entry>
            {canManage.value && <Entry href={projectAddress(id, 'webhooks')}>Webhooks</Entry>}
            {canManage.value && <Entry href={projectAddress(id, 'audit')}>Audit</Entry>}
            {canManage.value && <Entry href={projectAddress(id, 'plan')}>Plan</Entry>}
          </ul>
        </nav>
      )}
      <nav aria-label="Account">
        <h2>Account</h2>
        <ul>
          <Entry href="/account">{`Account${invitationText()}`}</Entry>
          <Entry href="/account/keys">API keys</Entry>
        </ul>
      </nav>
      {isSuperadmin.value && (
        <nav aria-label="Administration">
          <h2>Administration</h2>
          <ul>
            <Entry href="/admin/users">Users</Entry>
            <Entry href="/admin/rollouts">Rollouts</Entry>
          </ul>
        </nav>
      )}
    </>
  );
}

function BoardList({ projectId }: { projectId: number }) {
  return (
    <nav aria-label="Boards">
      <h2>Boards</h2>
      <ul id="boards">
        {boards.value?.map(({ id, title, cards_count }) => (
          <Entry key={id} href={projectAddress(projectId, 'boards', id)}>
            <span class="name" dir="auto">
              {title}
            </span>{' '}
            <span class="count">{cards_count}</span>
          </Entry>
        ))}
      </ul>
      {boards.value?.length === 0 && <p class="hint">No board yet.</p>}
      {canChange.value && <NewBoard />}
    </nav>
  );
}

/** Marked as current also while something of it is open. */
function Entry({ href, children }: { href: string; children: ComponentChildren }) {
  const { pathname } = new URL(currentPlace(), 'http://page');
  const isCurrent = pathname === href || (href !== '/account' && pathname.startsWith(`${href}/`));
  return (
    <li>
      <a href={href} aria-current={isCurrent ? 'page' : undefined}>
        {children}
      </a>
    </li>
  );
}
