import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { account, accountFailure, isSuperadmin, readAccount } from './account.ts';
import { address, go, projectAddress } from './address.ts';
import { BoardPage } from './board/boardPage.tsx';
import { Frame } from './frame.tsx';
import { onDemand } from './onDemand.tsx';
import { Button } from './parts/button.tsx';
import { Question } from './parts/dialog.tsx';
import { Loading, useLoaded, Waiting } from './parts/loaded.tsx';
import { Messages } from './parts/message.tsx';
import { canManage, project, projectFailure } from './project.ts';
import { client, explain, isPassing } from './service.ts';
import { hasEnded, isLeaving, isSignedIn, keepSession } from './session.ts';
import { ProofDialog, SignInAgain } from './signIn.tsx';
import { SsoCallback } from './sso.tsx';
import { StartPage } from './startPage.tsx';

type PageOf = { title: string; show: ComponentType; isAllowed?: () => boolean };

const PROJECT_PAGES: Record<string, PageOf> = {
  boards: { title: 'Board', show: BoardPage },
  due: { title: 'Due and mine', show: onDemand(async () => (await import('./board/duePage.tsx')).DuePage) },
  trash: { title: 'Trash', show: onDemand(async () => (await import('./board/trashPage.tsx')).TrashPage) },
  tags: { title: 'Tags', show: onDemand(async () => (await import('./board/tagsPage.tsx')).TagsPage) },
  members: { title: 'Members', show: onDemand(async () => (await import('./desk/membersPage.tsx')).MembersPage) },
  webhooks: {
    title: 'Webhooks',
    show: onDemand(async () => (await import('./desk/webhooksPage.tsx')).WebhooksPage),
    isAllowed: () => canManage.value,
  },
  audit: {
    title: 'Audit',
    show: onDemand(async () => (await import('./desk/auditPage.tsx')).AuditPage),
    isAllowed: () => canManage.value,
  },
  plan: {
    title: 'Plan',
    show: onDemand(async () => (await import('./desk/planPage.tsx')).PlanPage),
    isAllowed: () => canManage.value,
  },
  templates: {
    title: 'Templates',
    show: onDemand(async () => (await import('./desk/templatesPage.tsx')).TemplatesPage),
  },
};

const ACCOUNT_PAGES: Record<string, PageOf> = {
  '': { title: 'Account', show: onDemand(async () => (await import('./desk/accountPage.tsx')).AccountPage) },
  keys: { title: 'API keys', show: onDemand(async () => (await import('./desk/keysPage.tsx')).KeysPage) },
};

const ADMIN_PAGES: Record<string, PageOf> = {
  users: { title: 'Users', show: onDemand(async () => (await import('./desk/usersPage.tsx')).UsersPage) },
  rollouts: { title: 'Rollouts', show: onDemand(async () => (await import('./desk/rolloutsPage.tsx')).RolloutsPage) },
};

const LinkPage = onDemand(async () => (await import('./link/linkPage.tsx')).LinkPage);

export function App() {
  if (isLeaving.value) return <Loading />;
  if (address.value.area === 'sso') return <SsoCallback />;
  return (
    <>
      {address.value.area === 'link' ? <LinkPage /> : isSignedIn.value ? <SignedIn /> : <StartPage />}
      {hasEnded.value && address.value.page !== 'reset-password' && <SignInAgain />}
      <ProofDialog />
      <Question />
      <Messages />
    </>
  );
}

function SignedIn() {
  const page = currentPage();
  useTitle(page?.title);
  if (accountFailure.value) return <Refused />;
  return <Frame>{account.value ? <Content page={page} /> : <Loading />}</Frame>;
}

/** The address names no project: the default one, else the first. */
function Home() {
  const first = useLoaded(async () => account.peek()?.default_project_id ?? (await firstProject()) ?? null, []);
  const id = first.data.value;
  useEffect(() => {
    if (id && address.peek().area === 'start') go(projectAddress(id), { replace: true });
  }, [id]);
  return <Waiting loaded={first}>{id === null ? <NoProject /> : <Loading />}</Waiting>;
}

async function firstProject(): Promise<number | undefined> {
  const list = isSuperadmin.peek() ? client.projects.list : client.projects.listOwn;
  return (await list.query({ limit: 1 })).projects[0]?.id;
}

function currentPage(): PageOf | undefined {
  const { area, page } = address.value;
  if (area === 'project') return pageIn(PROJECT_PAGES, page ?? 'boards');
  if (area === 'account') return pageIn(ACCOUNT_PAGES, page ?? '');
  if (area === 'admin' && isSuperadmin.value) return pageIn(ADMIN_PAGES, page ?? 'rollouts');
  return undefined;
}

const pageIn = (pages: Record<string, PageOf>, name: string) => (Object.hasOwn(pages, name) ? pages[name] : undefined);

function Content({ page }: { page: PageOf | undefined }) {
  const { area } = address.value;
  if (area === 'start') return <Home />;
  if (area === 'project' && projectFailure.value) return <Missing error={projectFailure.value} />;
  if (area === 'project' && !project.value) return <Loading />;
  if (!page || (page.isAllowed && !page.isAllowed()))
    return <Missing error={new Error('There is no such page, or it is not for your role.')} />;
  return <page.show />;
}

const Missing = ({ error }: { error: unknown }) => (
  <section class="empty">
    <h1>{isPassing(error) ? 'The service does not answer' : 'Not here'}</h1>
    <p>{explain(error)}</p>
    <p>
      {isPassing(error) ? (
        'The page goes on trying.'
      ) : (
        <a class="button" href="/">
          To your boards
        </a>
      )}
    </p>
  </section>
);

/** The service does not accept what is stored: a key of the API page, for example. */
function Refused() {
  return (
    <main class="empty" id="content">
      <h1>{isPassing(accountFailure.value) ? 'The service does not answer' : 'Not signed in'}</h1>
      <p class="failure" role="alert">
        {explain(accountFailure.value)}
      </p>
      <div class="choices">
        <Button onClick={readAccount}>Try again</Button>
        <Button as="quiet" onClick={() => keepSession(undefined)}>
          Sign in with another account
        </Button>
      </div>
    </main>
  );
}

const NoProject = () => (
  <section class="empty">
    <h1>No project yet</h1>
    <p>Choose a project above. If there is none, ask its owner for an invitation: it appears in your account.</p>
    <p>
      <a class="button" href="/account">
        To your account
      </a>
    </p>
  </section>
);

/** Boards name themselves. */
function useTitle(title: string | undefined): void {
  const { area } = address.value;
  const name = project.value?.name;
  useEffect(() => {
    const parts = [title ?? 'Boards', ...(area === 'project' && name ? [name] : []), 'Deckhand'];
    document.title = parts.join(' · ');
  }, [title, area, name]);
}
