import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import type { TemplateRun } from '../../shared/templateRun.ts';
import { counted } from '../runtime/count.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { callAll } from './calls.ts';
import type { Call, Given, Outcome } from './command.ts';
import { progressBar } from './progress.ts';
import type { Terminal } from './terminal.ts';

/** Syncs and pushes change many projects: they have a preview, progress, and a report. */

const PREVIEWS: Record<string, string> = {
  'masterBoards.sync': 'masterBoards.previewSync',
  'masterBoards.push': 'masterBoards.previewPush',
  'masterGroups.push': 'masterGroups.previewPush',
  'masterCards.push': 'masterCards.previewPush',
};

export const isTemplateRun = (procedure: string) => procedure in PREVIEWS;

type Run = z.output<typeof TemplateRun>;

export async function runTemplate(call: Call, procedure: string, { input, chosen, terminal }: Given): Promise<Outcome> {
  const preview = PREVIEWS[procedure];
  if (preview && terminal.canReply && terminal.canSee && !chosen.yes) await confirm(call, preview, input, terminal);

  const [newest] = await runsOf(call);
  const findRun = async () =>
    (await runsOf(call)).find((run) => run.id > (newest?.id ?? 0) && isRunOf(run, procedure, input as Template));
  const running = call(procedure, input);
  const result = await (terminal.canSee ? withProgress(running, findRun, terminal) : running);
  // The run only adds a summary: the result is valid without it.
  const run = await findRun().catch(() => undefined);
  return { result, ...(run && { message: summaryOf(run) }) };
}

async function confirm(call: Call, preview: string, input: unknown, terminal: Terminal): Promise<void> {
  const { projects } = (await callAll(call, preview, input)) as { projects: { outcome: string }[] };
  const counts = [...Map.groupBy(projects, ({ outcome }) => outcome)].map(([outcome, of]) => `${of.length} ${outcome}`);
  terminal.write(`Preview of ${counted(projects.length, 'project')}: ${counts.join(', ') || 'none'}.\n`);
  const reply = await terminal.ask('Go on? [y/N] ');
  if (!/^y(es)?$/i.test(reply.trim())) throw startFailure('Nothing was changed.');
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
  const ended = running.finally(() => {
    isRunning = false;
  });
  ended.catch(() => undefined);
  for (let turn = 0; isRunning; turn++) {
    // A failed poll doesn't mean a failed run.
    const run = await findRun().catch(() => undefined);
    if (isRunning) terminal.update(progressLine(run, turn));
    await Promise.race([ended.catch(() => undefined), pause(POLL_MILLISECONDS)]);
  }
  terminal.update('');
  return ended;
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
