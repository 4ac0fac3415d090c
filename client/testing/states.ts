import { type Client, createClient } from '../client.ts';
import { makeTurns } from '../events/turns.ts';
import type { Procedures } from '../procedures.ts';
import { type BoardState, fillBoard, fillTemplate, type TemplateState } from './boards.ts';
import type { InputOf, OutputOf } from './types.ts';

/** Start states for tests. Each makes new rows with the service's own procedures, as a superadmin. */
export type States = {
  /** A project of a new platform. With `tools`, it gets the templates of these. */
  givenProject: (state?: ProjectState) => Promise<Project>;
  /** Somebody with a role in the project; `member` by default. */
  givenMember: (project: ProjectChoice, state?: MemberState) => Promise<Person>;
  /** A member with the role `owner`. */
  givenOwner: (project: ProjectChoice, state?: PersonState) => Promise<Person>;
  /** Somebody with access to every project, who manages templates. */
  givenSuperadmin: (state?: PersonState) => Promise<Person>;
  /** A program with an API key for the project: `givenService(project, { scopes: ['cards:read'] })`. */
  givenService: (project: ProjectChoice, state: ServiceState) => Promise<Service>;
  /** A board with groups and cards: `givenBoard(project, { groups: [{ title: 'To do', cards: ['First'] }] })`. */
  givenBoard: (project: ProjectChoice, state?: BoardState) => Promise<FullBoard>;
  /** A master board with groups and cards. Later projects with its `tool_key`, a new one by default, get it; others by a sync. */
  givenTemplate: (state?: TemplateState) => Promise<FullBoard>;
  /** A plan of the catalogue: `pro` of `websites`, 19.00 EUR a month by default. */
  givenPlan: (state?: Partial<InputOf<Procedures['plans']['set']>>) => Promise<Plan>;
  /** A trial of the project's platform; of `websites` and for 14 days by default. */
  givenTrial: (project: Pick<Project, 'platform_id'>, state?: { product?: string; days?: number }) => Promise<Trial>;
  /** What happened so far, in order: in the project, or everywhere. */
  events: (project?: ProjectChoice) => Promise<Event[]>;
};

export type Project = OutputOf<Procedures['projects']['create']>['project'];
export type FullBoard = OutputOf<Procedures['boards']['get']>['board'];
export type Event = OutputOf<Procedures['events']['list']>['events'][number];
export type Plan = OutputOf<Procedures['plans']['set']>['plan'];
export type Trial = OutputOf<Procedures['subscriptions']['setTrial']>['subscription'];

/** Somebody who can sign in. The client does so by itself, and acts in the project. */
export type Person = { id: number; name: string; email: string; password: string; client: Client };
/** A program; `secret` is that of its API key, which the client sends. */
export type Service = { id: number; name: string; secret: string; client: Client };

export type ProjectChoice = { id: number };
export type ProjectState = Partial<InputOf<Procedures['projects']['create']>>;
export type PersonState = Omit<Partial<InputOf<Procedures['users']['create']>>, 'kind'>;
export type MemberState = PersonState & { role?: Role };
export type ServiceState = Omit<InputOf<Procedures['keys']['create']>, 'name' | 'project_id' | 'user_id'> & {
  name?: string;
  role?: Role;
};
type Role = InputOf<Procedures['members']['set']>['role'];

/** `label` makes names unique among several that make start states in one Deckhand. */
export function makeStates(url: string, signIn: { email: string; password: string }, label?: string): States {
  let made = 0;
  const nameOf = (kind: string) => [kind, label, ++made].filter(Boolean).join(' ');
  const admin = createClient({ url, signIn });
  const inTurn = makeTurns();

  async function givenProject(state: ProjectState = {}): Promise<Project> {
    const name = nameOf('Project');
    const platform_id = state.platform_id ?? (await admin.platforms.create.mutate({ name })).platform.id;
    return (await admin.projects.create.mutate({ name, ...state, platform_id })).project;
  }

  async function givenPerson(kind: string, state: PersonState, project?: ProjectChoice): Promise<Person> {
    const name = nameOf(kind);
    const email = `${name.replaceAll(' ', '-').toLowerCase()}@example.test`;
    const given = { name, email, password: PASSWORD, ...state };
    // One at a time: the service limits how many passwords it hashes at once.
    const { user } = await inTurn('users', () => admin.users.create.mutate(given));
    const signIn = { email: user.email, password: given.password };
    return { id: user.id, name: user.name, ...signIn, client: createClient({ url, signIn, projectId: project?.id }) };
  }

  async function givenMember(project: ProjectChoice, { role = 'member', ...state }: MemberState = {}): Promise<Person> {
    const person = await givenPerson(
      role.replace(/^./, (letter) => letter.toUpperCase()),
      state,
      project,
    );
    await admin.as({ projectId: project.id }).members.set.mutate({ user_id: person.id, role });
    return person;
  }

  async function givenService(
    project: ProjectChoice,
    { name = nameOf('Service'), role = 'member', ...state }: ServiceState,
  ): Promise<Service> {
    const client = admin.as({ projectId: project.id });
    const { user } = await client.users.create.mutate({ kind: 'service', name });
    await client.members.set.mutate({ user_id: user.id, role });
    const { secret } = await client.keys.create.mutate({
      ...state,
      name,
      user_id: user.id,
      project_id: project.id,
    });
    return { id: user.id, name, secret, client: createClient({ url, token: secret }) };
  }

  return {
    givenProject,
    givenMember,
    givenOwner: (project, state) => givenMember(project, { ...state, role: 'owner' }),
    givenSuperadmin: (state = {}) => givenPerson('Superadmin', { superadmin: true, ...state }),
    givenService,
    givenBoard: (project, state = {}) =>
      fillBoard(admin.as({ projectId: project.id }), { title: nameOf('Board'), ...state }),
    givenTemplate: (state = {}) =>
      fillTemplate(admin, { title: nameOf('Template'), tool_key: nameOf('tool').replaceAll(' ', '-'), ...state }),
    givenPlan: async (state = {}) => (await admin.plans.set.mutate({ ...PLAN, ...state })).plan,
    givenTrial: async ({ platform_id }, state = {}) =>
      (await admin.subscriptions.setTrial.mutate({ platform_id, product: PLAN.product, ...state })).subscription,
    events: (project) => allEvents(admin, project),
  };
}

async function allEvents(admin: Client, project: ProjectChoice | undefined): Promise<Event[]> {
  const events: Event[] = [];
  let page: Awaited<ReturnType<typeof admin.events.list.query>> | undefined;
  do {
    page = await admin.events.list.query({ project_id: project?.id, after: page?.cursor, limit: 500 });
    events.push(...page.events);
  } while (page.has_more);
  return events;
}

const PASSWORD = 'a password of a test user';
const PLAN = { product: 'websites', plan: 'pro', period: 'month', price_cents: 1900 } as const;
