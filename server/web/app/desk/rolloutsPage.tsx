import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { EVENT_TYPES, type EventType } from '../../../../shared/eventType.ts';
import { address, go, withQuery } from '../address.ts';
import { followEvents } from '../feed.ts';
import { Button, Hint, set, TextButton } from '../parts/button.tsx';
import { counted } from '../parts/counted.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Choice } from '../parts/form.tsx';
import { type Loaded, type Page, useLoaded, usePages, Waiting } from '../parts/loaded.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time, timeText } from '../parts/time.tsx';
import { client } from '../service.ts';
import { asPage, DeskPage, Facts, type Step, Steps } from './operators.tsx';

type Rollout = Awaited<ReturnType<typeof client.rollouts.get.query>>['rollout'];
type Target = Awaited<ReturnType<typeof client.rollouts.report.query>>['projects'][number];
type Line = Awaited<ReturnType<typeof client.rollouts.preview.query>>['lines'][number];
type Counts = Record<string, number>;
type Shown = { rollout: Rollout; byStage: Counts[] | undefined };

const TYPES = Object.keys(EVENT_TYPES).filter((type) => type.startsWith('rollout.')) as EventType[];
/** What happened to a project, in the order of the bars. */
const OUTCOMES = ['done', 'unchanged', 'rolled_back', 'failed', 'conflict', 'held', 'skipped', 'planned'] as const;
const TEXTS: Record<string, string> = { unchanged: 'had it already', conflict: 'in conflict', planned: 'not reached' };
const textOf = (state: string) => TEXTS[state] ?? state.replace('_', ' ');

export const RolloutsPage = () => {
  const { id } = address.value;
  return id === undefined ? <Rollouts /> : <OneRollout key={id} id={id} />;
};

const COLUMNS: Column<Rollout>[] = [
  ['Rollout', (rollout) => <a href={`/admin/rollouts/${rollout.id}`}>{nameOf(rollout)}</a>],
  ['State', (rollout) => <State {...rollout} />],
  ['Stage', ({ stage, stages }) => `${stage} of ${stages.length}`],
  ['Projects', ({ projects }) => <Bar counts={projects} />],
  ['By', ({ user_name }) => user_name],
  ['Planned', ({ created_at }) => <Time at={created_at} />],
];

const COMMANDS = `deckhand releases publish --board-id 1 --note 'What is new'
deckhand rollouts plan --release-id 2 --stages '[{"projects":[1]},{"percent":100}]'
deckhand rollouts start --id 1`;

function Rollouts() {
  const pages = usePages<Rollout>((cursor) => asPage(client.rollouts.list.query({ limit: 50, cursor })), []);
  useLive(pages, pages.data.value?.some(isMoving) ? 5 : 0);
  return (
    <DeskPage title="Rollouts">
      <Hint>
        A rollout brings a release of a master board to projects, stage by stage. It is planned and started with the
        command line. <a href="/docs/guides/rollouts">How rollouts work</a>
      </Hint>
      <Table
        noun="rollout"
        pages={pages}
        keyOf={({ id }) => id}
        none="No rollout yet. This is how one begins:"
        columns={COLUMNS}
      />
      {pages.data.value?.length === 0 && <pre tabIndex={0}>{COMMANDS}</pre>}
    </DeskPage>
  );
}

const nameOf = ({ board_title, release_number }: Rollout) => `${board_title}, release ${release_number}`;
const isMoving = ({ state }: Rollout) => ['planning', 'running', 'rolling_back'].includes(state);
const sum = (counts: Counts, states: readonly string[] = OUTCOMES) =>
  states.reduce((total, state) => total + (counts[state] ?? 0), 0);
const projectsIn = (count: number) => counted(count, 'project');

/** Reads again when the feed tells of a rollout and, since no event tells of each project, every so many seconds. */
function useLive({ reload, isLoading }: Loaded<unknown>, seconds: number): void {
  useEffect(() => {
    const end = new AbortController();
    followEvents({ types: TYPES }, reload, end.signal);
    return () => end.abort();
  }, []);
  useEffect(() => {
    const read = () => document.hidden || isLoading.peek() || reload();
    const timer = seconds > 0 ? setInterval(read, seconds * 1000) : undefined;
    return () => clearInterval(timer);
  }, [seconds]);
}

const HALTS: Record<string, string> = {
  'paused failures': 'paused by itself: too many failed',
  'paused conflicts': 'paused by itself: too many conflicts',
  'aborted superseded': 'ended by a later sync or push',
};

function State({ state, reason, stage, is_soaking, next_at }: Rollout) {
  const soak = next_at ? `the next begins ${timeText(next_at)}` : 'waits for the next';
  const text = is_soaking && state === 'running' ? `stage ${stage} finished, ${soak}` : state.replace('_', ' ');
  return <span class={`badge ${state}`}>{HALTS[`${state} ${reason}`] ?? text}</span>;
}

/** How many projects are in which state; the list says the same as the colours. */
function Bar({ counts }: { counts: Counts }) {
  const present = OUTCOMES.filter((state) => counts[state]);
  return (
    <div class="progress">
      <div aria-hidden="true">
        {present.map((state) => (
          <span key={state} class={state} style={{ flexGrow: counts[state] }} />
        ))}
      </div>
      <ul>
        {present.map((state) => (
          <li key={state} class={state}>{`${counts[state]?.toLocaleString()} ${textOf(state)}`}</li>
        ))}
      </ul>
    </div>
  );
}

/** Beyond that many projects, they are not counted by stage: each page of the report is a call. */
const MOST_COUNTED = 2000;

async function readRollout(id: number): Promise<Shown> {
  const { rollout } = await client.rollouts.get.query({ id });
  if (sum(rollout.projects) > MOST_COUNTED) return { rollout, byStage: undefined };
  const byStage = rollout.stages.map((): Counts => ({}));
  for await (const { stage, state } of client.rollouts.report.each({ id, limit: 200 })) {
    const counts = byStage[stage - 1] ?? {};
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return { rollout, byStage };
}

function OneRollout({ id }: { id: number }) {
  const loaded = useLoaded(() => readRollout(id), [id]);
  const shown = loaded.data.value;
  useLive(loaded, shown && isMoving(shown.rollout) ? (shown.rollout.is_soaking ? 15 : 2) : 0);
  return (
    <DeskPage title={shown ? nameOf(shown.rollout) : 'Rollout'} up={{ href: '/admin/rollouts', text: 'All rollouts' }}>
      <Waiting loaded={loaded}>{shown && <Picture {...shown} reload={loaded.reload} />}</Waiting>
    </DeskPage>
  );
}

function Picture({ rollout, byStage, reload }: Shown & { reload: () => Promise<void> }) {
  const { id, state, stages, projects } = rollout;
  const outcome = OUTCOMES.find((one) => one === address.value.query.get('outcome'));
  const choices = OUTCOMES.map((one): [string, string] => [one, `${textOf(one)} (${projects[one] ?? 0})`]);
  return (
    <>
      <p role="status">
        <State {...rollout} /> {isMoving(rollout) && <span class="hint">This page follows it.</span>}
      </p>
      <Steps steps={stepsOf({ rollout, byStage }, reload)} />
      {state === 'planned' && (
        <Hint>
          No project has changed yet. Within a day, start it with <code>deckhand rollouts start --id {id}</code>
        </Hint>
      )}
      <Facts facts={factsOf(rollout)} />
      {!byStage && <Bar counts={projects} />}
      <ol class="stages">
        {stages.map((_, at) => (
          <Stage key={at} rollout={rollout} at={at} counts={byStage?.[at]} />
        ))}
      </ol>
      {sum(projects, ['failed']) > 0 && (
        <>
          <h2>Failures</h2>
          <Targets rollout={rollout} state="failed" noun="failed project" />
        </>
      )}
      <h2>Projects</h2>
      <Choice
        label="Outcome"
        choices={[['', 'all'], ...choices]}
        value={outcome ?? ''}
        onChange={({ currentTarget }) => go(withQuery({ outcome: currentTarget.value }), { replace: true })}
      />
      <Targets rollout={rollout} state={outcome} noun="project" />
    </>
  );
}

function factsOf(rollout: Rollout): [string, ComponentChildren][] {
  const { projects, max_failed, max_conflicts, created_at, started_at, finished_at, user_name } = rollout;
  const conflicts = `, or more than ${max_conflicts} gained a conflict (${sum(projects, ['conflict'])} so far)`;
  const failures = `more than ${max_failed} failed (${sum(projects, ['failed'])} so far)`;
  return [
    ['Why', rollout.note],
    ['Reaches', `${projectsIn(sum(projects))} in ${counted(rollout.stages.length, 'stage')}`],
    ['Changes', changesOf(rollout)],
    ['Overwrites', rollout.overwrite.join(', ')],
    ['Stops when', max_conflicts === null ? failures : failures + conflicts],
    ['Planned', `${timeText(created_at)}${user_name ? ` by ${user_name}` : ''}`],
    ['Started', started_at && timeText(started_at)],
    ['Ended', finished_at && timeText(finished_at)],
  ];
}

type Changed = Record<'rows_added' | 'fields_changed' | 'fields_kept' | 'fields_in_conflict' | 'rows_pinned', number>;
const changesOf = ({ rows_added, fields_changed, fields_kept, fields_in_conflict, rows_pinned }: Changed) =>
  listed(
    [rows_added, 'row', 'added'],
    [fields_changed, 'field', 'changed'],
    [fields_kept, 'edited field', 'kept'],
    [fields_in_conflict, 'field', 'in conflict'],
    [rows_pinned, 'rolled-back row', 'left out'],
  );
const listed = (...parts: [count: number, noun: string, what: string][]) =>
  parts.flatMap(([count, noun, what]) => (count > 0 ? `${counted(count, noun)} ${what}` : [])).join(', ') ||
  'no change';

function Stage({ rollout, at, counts }: { rollout: Rollout; at: number; counts: Counts | undefined }) {
  const { percent, projects, soak_minutes } = rollout.stages[at] ?? {};
  const isCurrent = rollout.started_at !== null && !rollout.finished_at && rollout.stage === at + 1;
  const soak = soak_minutes == null ? 'for “Begin the next stage”' : counted(soak_minutes, 'minute');
  return (
    <li class="box" aria-current={isCurrent ? 'step' : undefined}>
      <h2>Stage {at + 1}</h2>
      <Hint>{projects ? `Projects ${projects.join(', ')}` : `Up to ${percent} % of the projects`}</Hint>
      {counts && <Bar counts={counts} />}
      {at < rollout.stages.length - 1 && <Hint>Then it waits {soak}.</Hint>}
    </li>
  );
}

const REACHING = ['running', 'paused', 'aborted', 'done'];
type Call = 'advance' | 'pause' | 'resume' | 'retryFailed' | 'abort' | 'rollback';

/** What the state allows; each says what goes. */
function stepsOf({ rollout, byStage }: Shown, reload: () => Promise<void>): Step[] {
  const { id, state, stage, is_soaking, started_at, projects, release_number } = rollout;
  const release = `release ${release_number}`;
  const [waiting, reached] = [projectsIn(sum(projects, ['planned'])), projectsIn(sum(projects, ['done', 'unchanged']))];
  const [failed, left] = [sum(projects, ['failed']), sum(projects, ['failed', 'conflict', 'held'])];
  const isAny = (...states: string[]) => states.includes(state);
  const isAgain = state === 'rolled_back' && failed > 0;
  const next = byStage ? projectsIn(sum(byStage[stage] ?? {}, ['planned'])) : 'its projects';
  const step = (label: string, call: Call, isOffered: boolean, question: string): Step => ({
    ...{ label, isOffered, question, isDestructive: call === 'abort' || call === 'rollback' },
    run: () => client.rollouts[call].mutate({ id }).finally(reload),
  });
  const questions = {
    advance: `Stage ${stage + 1} brings ${release} to ${next}, without waiting any longer.`,
    pause: `It stops within a second. Without ${release} so far: ${waiting}.`,
    resume: `It goes on to ${waiting} with ${release}. What has failed so far (${failed}) is accepted: it pauses when more fail.`,
    retry: `Tries ${release} again in ${projectsIn(left)} that failed, held changes or gained a conflict. Fields in conflict stay as the project has them.`,
    abort: `It ends for good. Without ${release}: ${waiting}. With it, and keeping it: ${reached}.`,
    rollback: `Takes ${release} back in ${isAgain ? `those of ${projectsIn(failed)} where that has failed` : reached}. What a project has changed since stays. What is taken back comes again only after it changes, or after an owner unpins it.`,
  };
  return [
    step('Begin the next stage', 'advance', isAny('running') && is_soaking, questions.advance),
    step('Pause', 'pause', isAny('running'), questions.pause),
    step('Resume', 'resume', isAny('paused'), questions.resume),
    step('Retry failed', 'retryFailed', isAny('running', 'paused', 'done') && left > 0, questions.retry),
    step('Abort', 'abort', isAny('planning', 'planned', 'running', 'paused'), questions.abort),
    step(
      isAgain ? 'Roll back again' : 'Roll back',
      'rollback',
      isAgain || (!!started_at && isAny(...REACHING)),
      questions.rollback,
    ),
  ];
}

type TargetsProps = { rollout: Rollout; state: (typeof OUTCOMES)[number] | undefined; noun: string };

function Targets({ rollout: { id, projects }, state, noun }: TargetsProps) {
  const shown = useSignal<Target | undefined>(undefined);
  const pages = usePages<Target>(
    (cursor): Promise<Page<Target>> => {
      // As many as are shown, so that the list does not get shorter while it is read again.
      const limit = cursor ? 50 : Math.min(200, Math.max(50, pages.data.peek()?.length ?? 0));
      return asPage(client.rollouts.report.query({ id, limit, cursor, state }));
    },
    [state, JSON.stringify(projects)],
  );
  return (
    <>
      <Table
        noun={noun}
        pages={pages}
        keyOf={({ project_id }) => project_id}
        none="No project has this outcome."
        columns={[
          ['Project', (one) => <TextButton text={one.project_name} onClick={set(shown, one)} />],
          ['Stage', ({ stage }) => stage],
          ['Outcome', ({ state }) => <span class={`badge ${state}`}>{textOf(state)}</span>],
          ['What happened', whatHappened],
          ['Time', ({ updated_at }) => <Time at={updated_at} />],
        ]}
      />
      {shown.value && <Changes rolloutId={id} target={shown.value} onClose={set(shown, undefined)} />}
    </>
  );
}

const REASONS: Record<string, string> = {
  conflict: 'After the plan, it edited a field that the release changes, too.',
  held: 'It holds changes of this board.',
  skipped: 'It is inactive, or has no access to the board.',
};

function whatHappened(target: Target): string {
  const { state, error, attempts, fields_restored, rows_removed, left_by_rollback } = target;
  if (state === 'failed') return `${error ?? ''}${attempts > 1 ? ` Tried ${attempts} times.` : ''}`;
  if (state === 'rolled_back')
    return listed(
      [fields_restored, 'field', 'restored'],
      [rows_removed, 'row', 'removed'],
      [left_by_rollback, 'edited one', 'left'],
    );
  return REASONS[state] ?? `${state === 'planned' ? 'Planned: ' : ''}${changesOf(target)}`;
}

const LINE_COLUMNS: Column<Line>[] = [
  ['What', ({ what }) => <span class={`badge ${what}`}>{what}</span>],
  ['Row', ({ noun, title }) => <span dir="auto">{`${noun} “${title}”`}</span>],
  ['Field', ({ field }) => field ?? 'all'],
  ['Before', ({ before }) => <span dir="auto">{valueText(before)}</span>],
  ['In the release', ({ after }) => <span dir="auto">{valueText(after)}</span>],
];
const valueText = (value: unknown) => (typeof value === 'string' ? value : value == null ? '–' : JSON.stringify(value));

type ChangesProps = { rolloutId: number; target: Target; onClose: () => void };

/** Row by row and field by field: what would happen or, after its turn, what did. */
function Changes({ rolloutId: id, target: { project_id, project_name, state }, onClose }: ChangesProps) {
  const pages = usePages<Line>(async () => {
    const { lines } = await client.rollouts.preview.query({ id, project_id });
    return { rows: lines, next: null };
  }, []);
  return (
    <Dialog title={`Changes in ${project_name}`} onClose={onClose} class="changes">
      <Hint>{['done', 'rolled_back'].includes(state) ? 'What was done.' : 'What would be done now.'}</Hint>
      <Table
        noun="change"
        pages={pages}
        keyOf={({ noun, master_id, field }) => [noun, master_id, field].join()}
        none="Nothing."
        columns={LINE_COLUMNS}
      />
      <Button as="quiet" onClick={onClose}>
        Close
      </Button>
    </Dialog>
  );
}
