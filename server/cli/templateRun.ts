import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import type { TemplateRun } from '../../shared/templateRun.ts';
import { counted } from '../runtime/count.ts';
import { callAll } from './calls.ts';
import type { Call, Given, Outcome } from './command.ts';
import { confirm, isAsked, progressBar, type Terminal } from './terminal.ts';

/** Syncs and pushes change many projects: they have a preview, progress, and a report. */

export const isTemplateRun = (procedure: string) => /^master\w+\.(sync|push)$/.test(procedure);

/** `masterBoards.previewSync` of `masterBoards.sync`. */
const previewOf = (procedure: string) => procedure.replace(/\.\w/, (start) => `.preview${start[1]!.toUpperCase()}`);

type Run = z.output<typeof TemplateRun>;

export async function runTemplate(call: Call, procedure: string, given: Given): Promise<Outcome> {
  const { input, terminal } = given;
  if (isAsked(given)) {
    terminal.write(await previewLine(call, procedure, input));
    await confirm(terminal, 'Go on?', 'Nothing was changed.');
  }

  const [newest] = await runsOf(call);
  const findRun = async () =>
    (await runsOf(call)).find((run) => run.id > (newest?.id ?? 0) && isRunOf(run, procedure, input as Template));
  const running = call(procedure, input);
  const result = await (terminal.canSee ? withProgress(running, findRun, terminal) : running);
  // The run only adds a summary: the result is valid without it.
  const run = await findRun().catch(() => undefined);
  return { result, ...(run && { message: summaryOf(run) }) };
}

async function previewLine(call: Call, procedure: string, input: unknown): Promise<string> {
  const { projects } = (await callAll(call, previewOf(procedure), input)) as { projects: { outcome: string }[] };
  const counts = [...Map.groupBy(projects, ({ outcome }) => outcome)].map(([outcome, of]) => `${of.length} ${outcome}`);
  return `Preview of ${counted(projects.length, 'project')}: ${counts.join(', ') || 'none'}.\n`;
}

async function runsOf(call: Call): Promise<Run[]> {
  return ((await call('templateRuns.list', { limit: 10 })) as { runs: Run[] }).runs;
}

type Template = { board_id?: number; group_id?: number; card_id?: number };

/** Whether the run is of this template, and not of another one of the same board. */
function isRunOf(run: Run, procedure: string, { board_id, group_id, card_id }: Template): boolean {
  const [, verb = ''] = procedure.split('.');
  const isKind = run.kind.startsWith(verb);
  const isBoard = board_id === undefined || board_id === run.board_id;
  return isKind && isBoard && (run.group_id ?? undefined) === group_id && (run.card_id ?? undefined) === card_id;
}

const POLL_MILLISECONDS = 300;

async function withProgress<Result>(
  running: Promise<Result>,
  findRun: () => Promise<Run | undefined>,
  terminal: Terminal,
): Promise<Result> {
  let isRunning = true;
  const stop = () => {
    isRunning = false;
  };
  const ended = running.then(stop, stop);
  for (let turn = 0; isRunning; turn++) {
    // A failed poll doesn't mean a failed run.
    const run = await findRun().catch(() => undefined);
    if (isRunning) terminal.update(progressLine(run, turn));
    await Promise.race([ended, pause(POLL_MILLISECONDS)]);
  }
  terminal.update('');
  return running;
}

type Progress = Pick<Run, 'projects_done' | 'projects_total'>;

/** A bar, as soon as the run has begun. */
export function progressLine(run: Progress | undefined, turn: number): string {
  const { projects_done: done, projects_total: total } = run ?? { projects_done: 0, projects_total: 0 };
  if (total === 0) return `${'|/-\\'[turn % 4]} running`;
  return `${progressBar(done, total)} ${done} of ${counted(total, 'project')}`;
}

function summaryOf(run: Run): string {
  const changes = Object.entries(run).flatMap(([name, count]) => {
    const [, noun, change] = /^(board|group|card)s_(added|updated)$/.exec(name) ?? [];
    return noun ? `${counted(Number(count), noun)} ${change}` : [];
  });
  return `${run.projects_changed} of ${counted(run.projects_with_access, 'project')} changed, ${run.projects_skipped} without access; ${changes.join(', ')}.
Report: npx deckhand template-runs report --id ${run.id}`;
}
