import { randomUUID } from 'node:crypto';
import { makeCaller } from '../harness/caller.ts';

/** The callers, and known ids to refer to, learned from the answers of the service. */

const WHO = ['superadmin', 'owner', 'member', 'viewer', 'outsider', 'expendable'] as const;
export type Who = (typeof WHO)[number];

export type FuzzWorld = {
  url: string;
  tokens: Record<Who, string>;
  /** Own and foreign projects of the callers. */
  projects: number[];
  /** Known values by pool; some are deleted, some belong to other projects. */
  known: (name: string) => readonly (number | string)[];
  /** Remembers ids from an answer; returns the row that dropped out of the pool and should be deleted. */
  learn: (operation: string, result: unknown) => { operation: string; id: number } | undefined;
  /** Recreates callers that were signed out or deactivated. */
  restore: () => Promise<void>;
};

const PASSWORD = 'a password for fuzzing that nobody uses';

/** How many ids, and so rows, of each kind are kept, so that answers do not grow with the run. */
const MOST_KNOWN = 20;

const DELETABLE = /^(boards|groups|cards|comments|tags|master(Boards|Groups|Cards))$/;

/** Creates several users and projects, as a superadmin who is not one of the callers. */
export async function makeFuzzWorld(url: string, superadminToken: string): Promise<FuzzWorld> {
  const { rpc } = makeCaller(url, superadminToken);
  const pools = new Map<string, (number | string)[]>();
  const tokens = {} as Record<Who, string>;

  const { platform } = await rpc.platforms.create.mutate({ name: 'Fuzz' });
  const tools = ['fuzz'];
  const { project } = await rpc.projects.create.mutate({ platform_id: platform.id, name: 'Own', tools });
  const { project: foreign } = await rpc.projects.create.mutate({ platform_id: platform.id, name: 'Foreign' });
  for (const who of WHO) tokens[who] = await makeUser(who);
  await addRows();

  return { url, tokens, projects: [project.id, foreign.id], known, learn, restore };

  function known(name: string) {
    return pools.get(name) ?? [];
  }

  function remember(name: string, value: number | string) {
    const pool = pools.get(name) ?? [];
    pools.set(name, pool);
    if (!pool.includes(value)) pool.push(value);
    return pool.length > MOST_KNOWN ? pool.shift() : undefined;
  }

  function learn(operation: string, result: unknown) {
    if (typeof result !== 'object' || result === null) return;
    const { next_cursor, ...parts } = result as Record<string, any>;
    if (typeof next_cursor === 'string') remember('cursor', next_cursor);

    const [router, action] = operation.split('.') as [string, string];
    const created = Object.values(parts).find((part) => Number.isInteger(part?.id))?.id;
    if (created === undefined || !/^(create|submitVersion)$/.test(action)) return;
    const forgotten = remember(action === 'create' ? router : 'versions', created);
    if (typeof forgotten === 'number' && DELETABLE.test(router))
      return { operation: `${router}.delete`, id: forgotten };
  }

  async function makeUser(who: Who): Promise<string> {
    const email = `${randomUUID()}@fuzz.test`;
    const { user } = await rpc.users.create.mutate({
      name: who,
      email,
      password: PASSWORD,
      superadmin: who === 'superadmin',
      superadmin_billing: who === 'superadmin',
      default_project_id: who === 'outsider' ? foreign.id : project.id,
    });
    if (who !== 'superadmin') {
      const role = who === 'outsider' ? 'owner' : who === 'expendable' ? 'member' : who;
      const project_id = who === 'outsider' ? foreign.id : project.id;
      await rpc.members.set.mutate({ project_id, user_id: user.id, role });
    }
    if (who === 'expendable') {
      remember('users', user.id);
      remember('email', email);
    }
    return (await rpc.auth.authenticate.mutate({ email, password: PASSWORD })).token;
  }

  /** One row of every kind, for the first calls to refer to. */
  async function addRows() {
    const owner = makeCaller(url, tokens.owner).rpc;
    const made = async <Result>(operation: string, call: Promise<Result>): Promise<Result> => {
      const result = await call;
      learn(operation, result);
      return result;
    };
    const { board } = await made('boards.create', owner.boards.create.mutate({ title: 'A board' }));
    const { group } = await made('groups.create', owner.groups.create.mutate({ board_id: board.id, title: 'A group' }));
    const { card } = await made('cards.create', owner.cards.create.mutate({ group_id: group.id, title: 'A card' }));
    await made('comments.create', owner.comments.create.mutate({ card_id: card.id, comment: 'A comment' }));
    await made('tags.create', owner.tags.create.mutate({ name: 'A tag' }));

    const { board: template } = await made(
      'masterBoards.create',
      rpc.masterBoards.create.mutate({ title: 'A template', tool_key: 'fuzz' }),
    );
    const { group: part } = await made(
      'masterGroups.create',
      rpc.masterGroups.create.mutate({ board_id: template.id, title: 'A group' }),
    );
    await made('masterCards.create', rpc.masterCards.create.mutate({ group_id: part.id, title: 'A card' }));

    await rpc.plans.set.mutate({ product: 'fuzz', plan: 'pro', period: 'month', price_cents: 100 });
    await rpc.subscriptions.setTrial.mutate({ platform_id: platform.id, product: 'fuzz' });
    remember('platforms', platform.id);
    remember('product', 'fuzz');
    remember('plan', 'pro');
    const { theme } = await made(
      'themes.create',
      rpc.themes.create.mutate({ platform_id: platform.id, name: 'A theme' }),
    );
    await made('themes.submitVersion', owner.themes.submitVersion.mutate({ theme_id: theme.id, version: '1.0.0' }));
    await made('projects.create', rpc.projects.create.mutate({ platform_id: platform.id, name: 'Another' }));
    remember('password', PASSWORD);
    remember('new_password', PASSWORD);
  }

  async function restore() {
    for (const who of WHO) {
      const answer = await makeCaller(url, tokens[who]).post('/services/operations/v1/operations/boards/list');
      if (answer.status !== 200) tokens[who] = await makeUser(who);
    }
  }
}
