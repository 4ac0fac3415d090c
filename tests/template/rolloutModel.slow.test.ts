import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { stepRollout } from '../../server/domain/template/rolloutStep.ts';
import { edit } from '../harness/rollout.ts';
import { seed } from '../harness/sample.ts';
import { boardIn, givenTemplate, hideEarlierProjects, sync, type Template } from '../harness/template.ts';
import { type TestProject, testDb } from '../harness/world.ts';

/**
 * A model of releases and rollouts in memory, beside the real ones: the same random commands must lead to the same cards. Two nodes
 * work on rollouts at once, and are killed in the middle of a step.
 */

hideEarlierProjects();

const FIELDS = ['title', 'short_description'] as const;
type Values = Record<(typeof FIELDS)[number], string | null>;

/** The values that a copy got, and which content they came from. */
type Base = { key: string; values: Values };
type Copy = { values: Values; base: Base; isTouched: boolean };
type Project = {
  id: number;
  isActive: boolean;
  isHeld: boolean;
  copies: Map<number, Copy>;
  pins: Set<string>;
  release: Release | null;
};

type Change = { before: Partial<Values> | null; base: Base | null };
type Target = {
  stage: number;
  state: string;
  conflicts: number | null;
  changes: Map<number, Change>;
  previous: Release | null;
};
type Release = Map<number, Values>;
type Rollout = {
  id: number;
  release: Release;
  state: string;
  stage: number;
  isSoaking: boolean;
  stages: number[][];
  targets: Map<number, Target>;
  previous: Release | null;
};

const keyOf = (card: number, values: Values) => JSON.stringify([card, ...FIELDS.map((field) => values[field])]);
const isSame = (one: Release | undefined, other: Release) =>
  one?.size === other.size &&
  [...other].every(([card, values]) => one.has(card) && keyOf(card, one.get(card)!) === keyOf(card, values));

const setState = (of: { state: string }, state: string) => {
  of.state = state;
};

class Model {
  readonly draft: Release = new Map();
  readonly releases: Release[] = [];
  readonly projects = new Map<number, Project>();
  readonly rollouts: Rollout[] = [];
  rolledOut: Release | null = null;

  get open(): Rollout | undefined {
    return this.rollouts.find(({ state }) => ['running', 'paused', 'rolling_back'].includes(state));
  }

  publish(): Release {
    const last = this.releases.at(-1);
    if (!isSame(last, this.draft))
      this.releases.push(new Map([...this.draft].map(([card, values]) => [card, { ...values }])));
    return this.releases.at(-1)!;
  }

  /** Adds what is missing, as a sync does. Returns whether the project then has the release. */
  fill(project: Project, release: Release): boolean {
    const missing = [...release].filter(
      ([card, values]) => !project.copies.has(card) && !project.pins.has(keyOf(card, values)),
    );
    for (const [card, values] of missing)
      project.copies.set(card, {
        values: { ...values },
        base: { key: keyOf(card, values), values: { ...values } },
        isTouched: false,
      });
    return missing.length > 0 || !this.hasPins(project, release);
  }

  /** Whether something of it was rolled back in the project. */
  hasPins(project: Project, release: Release): boolean {
    return [...release].some(([card, values]) => project.pins.has(keyOf(card, values)));
  }

  /** What a project gets when it is created, or becomes active again. */
  begin(project: Project): void {
    const last = this.releases.at(-1);
    const isPlaced = this.fill(project, this.rolledOut ?? this.draft);
    if (isPlaced) project.release = this.rolledOut ?? (last && isSame(last, this.draft) ? last : project.release);
  }

  sync(): void {
    const release = this.publish();
    if (this.rolledOut) this.rolledOut = release;
    if (this.open && this.open.state !== 'rolling_back') this.open.state = 'aborted';
    for (const project of this.projects.values())
      if (project.isActive && !project.isHeld) {
        if (this.fill(project, release)) project.release = release;
      }
  }

  conflictsIn(project: Project, release: Release): number {
    if (project.isHeld) return 0;
    let count = 0;
    for (const [card, values] of release) {
      const copy = project.copies.get(card);
      if (!copy || project.pins.has(keyOf(card, values))) continue;
      for (const field of FIELDS) {
        const { [field]: own } = copy.values;
        const { [field]: base } = copy.base.values;
        if (own !== base && own !== values[field] && base !== values[field]) count++;
      }
    }
    return count;
  }

  plan(id: number, stages: number[][]): void {
    const release = this.publish();
    const targets = new Map<number, Target>();
    for (const project of this.projects.values())
      if (project.isActive) targets.set(project.id, this.targetFor(project, release, stages));
    this.rollouts.push({ id, release, state: 'planned', stage: 1, isSoaking: false, stages, targets, previous: null });
  }

  targetFor(project: Project, release: Release, stages: number[][]): Target {
    const at = stages.findIndex((named) => named.length === 0 || named.includes(project.id));
    return {
      stage: at + 1,
      state: 'planned',
      conflicts: project.isHeld ? null : this.conflictsIn(project, release),
      changes: new Map(),
      previous: null,
    };
  }

  start(rollout: Rollout): boolean {
    if (this.open) return false;
    const had = [...this.projects.values()]
      .map(({ release }) => release)
      .filter((release) => release !== rollout.release);
    const countOf = (release: Release) => had.filter((each) => each === release).length;
    const most = this.releases.filter((release) => had.includes(release)).sort((a, b) => countOf(a) - countOf(b));
    Object.assign(rollout, { state: 'running', previous: this.rolledOut ?? most.at(-1) ?? null });
    this.rolledOut ??= rollout.previous;
    return true;
  }

  /**
   * One step of a node, which took this number of projects, or found nothing left. Returns whether something was due: of two nodes
   * that found nothing left, only one ends a stage.
   */
  step(projects = 0): boolean {
    const rollout = this.open;
    if (!rollout || rollout.state === 'paused') return false;
    const next = (isNext: (target: Target) => boolean) =>
      [...rollout.targets]
        .filter(([, target]) => isNext(target))
        .sort(([a, x], [b, y]) => x.stage - y.stage || a - b)[0];
    if (rollout.state === 'rolling_back') {
      const found = next(({ state }) => state === 'done' || state === 'unchanged');
      if (found && projects > 0) this.takeBack(this.projects.get(found[0])!, rollout, found[1]);
      else if (!found) rollout.state = 'rolled_back';
      return true;
    }
    if (rollout.isSoaking) return false;
    const found = next(({ state, stage }) => state === 'planned' && stage <= rollout.stage);
    if (found && projects === 0) return true;
    if (found) this.apply(this.projects.get(found[0])!, rollout, found[1]);
    else if (rollout.stage < rollout.stages.length) rollout.isSoaking = true;
    else this.finish(rollout);
    return true;
  }

  finish(rollout: Rollout): void {
    const missing = [...this.projects.values()].filter(({ id, isActive }) => isActive && !rollout.targets.has(id));
    for (const project of missing)
      rollout.targets.set(project.id, this.targetFor(project, rollout.release, rollout.stages));
    const skipped = [...rollout.targets].filter(
      ([id, { state }]) => state === 'skipped' && this.projects.get(id)!.isActive,
    );
    for (const [, target] of skipped) Object.assign(target, { state: 'planned', conflicts: null });
    if (missing.length + skipped.length > 0) return;
    rollout.state = 'done';
    this.rolledOut = rollout.release;
  }

  apply(project: Project, { release }: Rollout, target: Target): void {
    const isInConflict = target.conflicts !== null && this.conflictsIn(project, release) > target.conflicts;
    if (!project.isActive || isInConflict || project.isHeld) {
      target.state = !project.isActive ? 'skipped' : isInConflict ? 'conflict' : 'held';
      return;
    }
    for (const [card, values] of release) {
      const key = keyOf(card, values);
      if (project.pins.has(key)) continue;
      const copy = project.copies.get(card);
      if (!copy) {
        project.copies.set(card, { values: { ...values }, base: { key, values: { ...values } }, isTouched: false });
        target.changes.set(card, { before: null, base: null });
        continue;
      }
      const before: Partial<Values> = {};
      const base: Base = { key, values: { ...values } };
      for (const field of FIELDS) {
        const own = copy.values[field];
        if (own !== copy.base.values[field] && own !== values[field]) base.values[field] = copy.base.values[field];
        else if (own !== values[field]) before[field] = own;
      }
      if (Object.keys(before).length > 0) {
        target.changes.set(card, { before, base: copy.base });
        for (const field of Object.keys(before) as (keyof Values)[]) copy.values[field] = values[field];
        copy.isTouched = true;
      }
      copy.base = base;
    }
    target.previous = project.release;
    if (target.changes.size > 0 || !this.hasPins(project, release)) project.release = release;
    target.state = target.changes.size > 0 ? 'done' : 'unchanged';
  }

  takeBack(project: Project, { release }: Rollout, target: Target): void {
    for (const [card, { before, base }] of target.changes) {
      const values = release.get(card)!;
      const copy = project.copies.get(card);
      if (before === null && copy && !copy.isTouched) project.copies.delete(card);
      if (before !== null && copy) {
        const restored = (Object.keys(before) as (keyof Values)[]).filter(
          (field) => copy.values[field] === values[field],
        );
        for (const field of restored) copy.values[field] = before[field] ?? null;
        if (restored.length > 0) copy.isTouched = true;
        const bases = Object.fromEntries(restored.map((field) => [field, base!.values[field]]));
        copy.base = { ...copy.base, values: { ...copy.base.values, ...bases } };
      }
      project.pins.add(keyOf(card, values));
    }
    if (project.release === release) project.release = target.previous;
    target.state = 'rolled_back';
  }
}

type Command =
  | { do: 'editMaster' | 'editCopy'; at: number; project: number; field: keyof Values; text: string }
  | {
      do:
        | 'addCard'
        | 'sync'
        | 'start'
        | 'advance'
        | 'pause'
        | 'resume'
        | 'abort'
        | 'retry'
        | 'rollBack'
        | 'newProject'
        | 'kill';
    }
  | { do: 'plan'; isStaged: boolean }
  | { do: 'steps'; count: number; nodes: number }
  | { do: 'hold' | 'activate'; project: number; isOn: boolean };

const at = fc.nat(5);
const simple = fc.constantFrom(
  'addCard',
  'sync',
  'start',
  'advance',
  'pause',
  'resume',
  'abort',
  'retry',
  'rollBack',
  'newProject',
  'kill',
);
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('editMaster' as const, 'editCopy' as const),
      at,
      project: at,
      field: fc.constantFrom(...FIELDS),
      text: fc.constantFrom('a', 'b', 'c'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: simple }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('plan' as const), isStaged: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('steps' as const),
      count: fc.integer({ min: 1, max: 4 }),
      nodes: fc.integer({ min: 1, max: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('hold' as const, 'activate' as const),
      project: at,
      isOn: fc.boolean(),
    }),
  },
) as fc.Arbitrary<Command>;

/** Starts, lets two nodes work, and takes back, so that long ways are not left to chance. */
const whole: fc.Arbitrary<Command[]> = fc
  .tuple(fc.array(command, { maxLength: 6 }), fc.array(command, { maxLength: 4 }), fc.array(command, { maxLength: 8 }))
  .map(([before, meanwhile, after]) => [
    ...before,
    { do: 'plan', isStaged: false },
    { do: 'start' },
    { do: 'steps', count: 1, nodes: 1 },
    ...meanwhile,
    { do: 'steps', count: 4, nodes: 2 },
    { do: 'rollBack' },
    { do: 'steps', count: 6, nodes: 2 },
    ...after,
  ]);

const pick = <Value>(values: Value[], at: number): Value => values[at % values.length]!;

async function play(commands: Command[]): Promise<void> {
  const template = await givenTemplate();
  const db = await testDb();
  const { rpc } = template.asSuperadmin;
  const model = new Model();
  for (const [at, card] of template.cards.entries())
    model.draft.set(card, { title: ['One', 'Two', 'Three'][at]!, short_description: null });
  const add = ({ id }: TestProject) => {
    const project: Project = { id, isActive: true, isHeld: false, copies: new Map(), pins: new Set(), release: null };
    model.projects.set(id, project);
    return project;
  };
  for (const project of template.projects) add(project);
  await sync(template);
  model.sync();

  for (const command of commands) {
    await perform(command);
    expect(await contentsOf(template), JSON.stringify(command)).toEqual(contentsIn(model));
    expect(await statesOf(template), JSON.stringify(command)).toEqual(statesIn(model));
  }

  async function perform(command: Command): Promise<void> {
    const rollout = model.open;
    const latest = model.rollouts.at(-1);
    switch (command.do) {
      case 'editMaster': {
        const [id, values] = pick([...model.draft], command.at);
        await rpc.masterCards.update.mutate({ id, [command.field]: command.text });
        model.draft.set(id, { ...values, [command.field]: command.text });
        return;
      }
      case 'editCopy': {
        const project = pick([...model.projects.values()], command.project);
        if (project.copies.size === 0) return;
        const [master, copy] = pick([...project.copies], command.at);
        const [{ id }] = (await query(
          db,
          sql`select id from cards where project_id = ${project.id} and master_card_id = ${master}`,
        )) as [{ id: number }];
        await edit('cards', id, { [command.field]: command.text });
        copy.values[command.field] = command.text;
        copy.isTouched = true;
        return;
      }
      case 'addCard': {
        const { card } = await rpc.masterCards.create.mutate({ group_id: template.groups[0], title: 'New' });
        model.draft.set(card.id, { title: 'New', short_description: null });
        return;
      }
      case 'sync':
        await sync(template);
        return model.sync();
      case 'newProject': {
        const { platform_id } = template.projects[0];
        const { project } = await rpc.projects.create.mutate({ platform_id, name: 'New', tools: [template.tool] });
        return model.begin(add({ id: project.id, platform_id }));
      }
      case 'activate': {
        const project = pick([...model.projects.values()], command.project);
        await rpc.projects.update.mutate({ id: project.id, is_active: command.isOn });
        if (command.isOn && !project.isActive && !project.isHeld) model.begin(project);
        project.isActive = command.isOn;
        return;
      }
      case 'hold': {
        const project = pick([...model.projects.values()], command.project);
        if (!project.isActive) return;
        const board_id = (await boardIn({ id: project.id, platform_id: 0 }, template)).id;
        await rpc.templates[command.isOn ? 'hold' : 'unhold'].mutate({ board_id });
        project.isHeld = command.isOn;
        return;
      }
      case 'plan': {
        if (model.rollouts.filter(({ state }) => state === 'planned').length > 5) return;
        const named = [template.projects[0].id];
        const isStaged = command.isStaged && model.projects.get(named[0]!)!.isActive;
        const { release } = await rpc.releases.publish.mutate({ board_id: template.board });
        const stages = isStaged ? [{ projects: named }, { percent: 100 }] : [{ percent: 100 }];
        const planned = await rpc.rollouts.plan.mutate({ release_id: release.id, stages });
        return model.plan(planned.rollout.id, isStaged ? [named, []] : [[]]);
      }
      case 'start': {
        if (latest?.state !== 'planned') return;
        const started = rpc.rollouts.start.mutate({ id: latest.id });
        if (model.start(latest)) await started;
        else await expect(started).rejects.toMatchObject({ reason: 'rollout_open' });
        return;
      }
      case 'steps':
        for (let step = 0; step < command.count; step++) {
          const done = await Promise.all(Array.from({ length: command.nodes }, () => stepRollout(db, 1)));
          for (const each of done) if (each) expect(model.step(each.projects) || each.projects === 0).toBe(true);
          if (done.every((each) => each === null)) expect(model.step()).toBe(false);
        }
        return;
      case 'kill': {
        const killed = db.transaction().execute(async (db) => {
          await stepRollout(db, 1);
          throw new Error('killed');
        });
        return expect(killed).rejects.toThrow('killed');
      }
      case 'advance':
        if (rollout?.state !== 'running' || !rollout.isSoaking) return;
        await rpc.rollouts.advance.mutate({ id: rollout.id });
        return void Object.assign(rollout, { stage: rollout.stage + 1, isSoaking: false });
      case 'pause':
        if (rollout?.state !== 'running') return;
        await rpc.rollouts.pause.mutate({ id: rollout.id });
        return setState(rollout, 'paused');
      case 'resume':
        if (rollout?.state !== 'paused') return;
        await rpc.rollouts.resume.mutate({ id: rollout.id });
        return setState(rollout, 'running');
      case 'abort':
        if (rollout?.state !== 'running' && rollout?.state !== 'paused') return;
        await rpc.rollouts.abort.mutate({ id: rollout.id });
        return setState(rollout, 'aborted');
      case 'retry': {
        if (rollout?.state !== 'running' && rollout?.state !== 'paused') return;
        const left = [...rollout.targets.values()].filter(({ state }) => ['conflict', 'held'].includes(state));
        if (left.length === 0) return;
        await rpc.rollouts.retryFailed.mutate({ id: rollout.id });
        for (const target of left) Object.assign(target, { state: 'planned', conflicts: null });
        return void Object.assign(rollout, { state: 'running', isSoaking: false });
      }
      case 'rollBack': {
        const taken = rollout ?? latest;
        if (!taken || !['running', 'paused', 'aborted', 'done'].includes(taken.state)) return;
        await rpc.rollouts.rollback.mutate({ id: taken.id });
        if (model.rolledOut === taken.release) model.rolledOut = taken.previous;
        return void Object.assign(taken, { state: 'rolling_back', isSoaking: false });
      }
    }
  }
}

const contentsOf = async ({ board }: Template) =>
  (
    await query(
      await testDb(),
      sql<{ line: string }>`
        select c.project_id || ' ' || c.master_card_id || ' ' || c.title || ' ' || coalesce(c.short_description, '') as line
        from cards c join cards m on m.id = c.master_card_id join groups g on g.id = m.group_id
        where g.board_id = ${board} and c.deleted_at is null`,
    )
  )
    .map(({ line }) => line)
    .sort();

const contentsIn = ({ projects }: Model) =>
  [...projects.values()]
    .flatMap(({ id, copies }) =>
      [...copies].map(([card, { values }]) => `${id} ${card} ${values.title} ${values.short_description ?? ''}`),
    )
    .sort();

const statesOf = async ({ board }: Template) =>
  (
    await query(
      await testDb(),
      sql<{ line: string }>`
        select o.id || ' ' || o.state || ' ' || coalesce(string_agg(t.project_id || ':' || t.state, ' ' order by t.project_id), '') as line
        from rollouts o left join rollout_targets t on t.rollout_id = o.id where o.board_id = ${board} group by o.id order by o.id`,
    )
  ).map(({ line }) => line);

const statesIn = ({ rollouts }: Model) =>
  rollouts.map(({ id, state, targets }) => {
    const lines = [...targets].sort(([a], [b]) => a - b).map(([project, target]) => `${project}:${target.state}`);
    return `${id} ${state} ${lines.join(' ')}`;
  });

it('rollouts lead to the same cards as their model, whatever happens meanwhile', async () => {
  const runs = Number(process.env.ROLLOUT_RUNS ?? 12);
  const property = fc.asyncProperty(
    fc.oneof(whole, fc.array(command, { minLength: 10, maxLength: 30 })),
    async (commands) => {
      const db = await testDb();
      await query(db, sql`update projects set is_active = false where is_active`);
      await query(db, sql`update rollouts set next_at = null`);
      await play(commands);
    },
  );

  await fc.assert(property, { numRuns: runs, seed, endOnFailure: true });
}, 600_000);
