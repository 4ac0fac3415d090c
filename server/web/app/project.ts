import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { account, untilAccount } from './account.ts';
import { address } from './address.ts';
import { feedPlace, followProject, type Listener, oncePerBurst } from './feed.ts';
import { client, retryLater } from './service.ts';
import { isLeaving, isSignedIn } from './session.ts';

export type Member = Awaited<ReturnType<typeof client.members.list.query>>['members'][number];
export type Tag = Awaited<ReturnType<typeof client.tags.list.query>>['tags'][number];
export type ListedBoard = Awaited<ReturnType<typeof client.boards.list.query>>['boards'][number];
export type Role = Member['role'];
export type Project = { id: number; name: string; role: Role };

/** The project of the address; undefined while it is being read. */
export const project = signal<Project | undefined>(undefined);
export const projectFailure = signal<unknown>(undefined);
/** By id. */
export const members = signal(new Map<number, Member>());
export const tags = signal(new Map<number, Tag>());
export const boards = signal<ListedBoard[] | undefined>(undefined);

/** What a role may not do is not offered. */
export const canChange = computed(() => project.value !== undefined && project.value.role !== 'viewer');
export const canManage = computed(() => project.value?.role === 'owner');

/** The client, acting in the project that is shown. */
export const inProject = () => client.as({ projectId: project.peek()?.id });

/** At most that many members are read for the names on cards; pickers search in the service. */
export const MOST_MEMBERS = 2000;

const listeners = new Set<Listener>();
/** Calls the listener for each change in the project that is shown, until the returned function is called. */
export function onProjectEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function readBoards(): Promise<void> {
  const shown = project.peek()?.id;
  const list = await inProject().boards.list.query();
  if (project.peek()?.id === shown) boards.value = list.boards;
}

export async function readTags(): Promise<void> {
  const shown = project.peek()?.id;
  const all = await Array.fromAsync(inProject().tags.list.each({ limit: 200 }));
  if (project.peek()?.id === shown) tags.value = new Map(all.map((tag) => [tag.id, tag]));
}

export async function readMembers(): Promise<void> {
  const shown = project.peek()?.id;
  const found = new Map<number, Member>();
  for await (const page of inProject().members.list.each({ limit: 200 }).pages()) {
    for (const member of page.members) found.set(member.user_id, member);
    if (found.size >= MOST_MEMBERS || project.peek()?.id !== shown) break;
  }
  if (project.peek()?.id === shown) members.value = found;
}

/** Opens the project of the address whenever it changes, and follows what others do in it. */
export function followAddress(): void {
  let opened: AbortController | undefined;
  /** Pages beside projects keep the last one, as the way back; of this tab, also after a reload. */
  const latest = signal(Number(sessionStorage.getItem(LATEST)) || undefined);
  effect(() => {
    latest.value = address.value.projectId ?? latest.peek();
    if (isLeaving.value || !latest.value) sessionStorage.removeItem(LATEST);
    else sessionStorage.setItem(LATEST, String(latest.value));
  });
  effect(() => {
    const id = isSignedIn.value ? latest.value : undefined;
    untracked(() => {
      opened?.abort();
      opened = new AbortController();
      batch(() => {
        project.value = undefined;
        projectFailure.value = undefined;
        boards.value = undefined;
        members.value = new Map();
        tags.value = new Map();
      });
      if (id !== undefined) openProject(id, opened.signal);
    });
  });
}

const LATEST = 'deckhand.project';

async function openProject(id: number, signal: AbortSignal): Promise<void> {
  try {
    // Before anything of the project is read, so that no change is missed.
    const [place, found, { id: userId }] = await Promise.all([feedPlace(id), findProject(id), untilAccount()]);
    if (signal.aborted) return;
    if (!found) throw noProject();
    project.value = found;
    projectFailure.value = undefined;
    followProject(id, userId, place, tell, signal);
    await Promise.all([readBoards(), readTags(), readMembers()]);
  } catch (error) {
    if (signal.aborted) return;
    projectFailure.value = error;
    retryLater(error, () => signal.aborted || openProject(id, signal));
  }
}

const noProject = () => new Error('There is no such project, or you are not a member of it.');

/** Superadmins are owners of every project. */
async function findProject(id: number): Promise<Project | undefined> {
  const [{ projects }, { superadmin }] = await Promise.all([client.projects.listOwn.query({ id }), untilAccount()]);
  if (!superadmin) return projects[0];
  const [found] = (await client.projects.list.query({ id })).projects;
  return found && { id, name: found.name, role: 'owner' };
}

/** Somebody has given the user another role, or has removed them. */
async function readRole(): Promise<void> {
  const id = project.peek()?.id;
  const found = id === undefined ? undefined : await findProject(id);
  if (project.peek()?.id !== id) return;
  project.value = found;
  if (!found) projectFailure.value = noProject();
}

const ignoringFailures = (read: () => Promise<void>) => oncePerBurst(() => read().catch(() => undefined));
const boardsSoon = ignoringFailures(readBoards);
const tagsSoon = ignoringFailures(readTags);
const membersSoon = ignoringFailures(readMembers);
const roleSoon = ignoringFailures(readRole);

const tell: Listener = (event, isOwn) => {
  const { type = '' } = event ?? {};
  // Without an event, some may have been missed.
  const isAbout = (noun: string) => event === undefined || type.startsWith(`${noun}.`);
  if (isAbout('board') || isAbout('template') || /^(group|card)\.(created|deleted|restored|moved)$/.test(type))
    boardsSoon();
  if (isAbout('tag')) tagsSoon();
  if (isAbout('member')) membersSoon();
  if (isAbout('member') && (!event || event.data.user_id === account.peek()?.id)) roleSoon();
  for (const listener of listeners) listener(event, isOwn);
};
