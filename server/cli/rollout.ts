import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import type { Rollout } from '../../shared/rollout.ts';
import { counted } from '../runtime/count.ts';
import type { Call, Given, Outcome } from './command.ts';
import { confirm, isAsked, progressBar } from './terminal.ts';

/** Rollouts change many projects: on a terminal they say what they will do, ask, and show how far they are. */

export const isRollout = (procedure: string) => /^rollouts\.(start|advance|rollback)$/.test(procedure);

type Read = z.output<typeof Rollout>;

const POLL_MILLISECONDS = 500;
/** The service works on it. Without one, as on the files of an embedded database, there is nothing to wait for. */
const MOST_POLLS_WITHOUT_PROGRESS = 20;

export async function runRollout(call: Call, procedure: string, given: Given): Promise<Outcome> {
  const { terminal } = given;
  const { id } = given.input as { id: number };
  const read = async () => ((await call('rollouts.get', { id })) as { rollout: Read }).rollout;
  if (isAsked(given)) {
    terminal.write(`${summaryOf(await read())}\n`);
    await confirm(terminal, procedure.endsWith('rollback') ? 'Take it back?' : 'Go on?', 'Nothing was changed.');
  }
  const result = (await call(procedure, given.input)) as { rollout: Read };
  if (!terminal.canSee) return { result };

  let rollout = result.rollout;
  let [unchanged, last] = [0, ''];
  for (; isUnderWay(rollout) && unchanged < MOST_POLLS_WITHOUT_PROGRESS; unchanged++) {
    await pause(POLL_MILLISECONDS);
    rollout = await read();
    const line = progressOf(rollout);
    if (line !== last) unchanged = 0;
    last = line;
    terminal.update(line);
  }
  terminal.update('');
  return { result: { rollout }, message: `${summaryOf(rollout)}\n${nextOf(rollout)}` };
}

const isUnderWay = ({ state, is_soaking }: Read) => (state === 'running' && !is_soaking) || state === 'rolling_back';

const totalOf = ({ projects }: Read) => Object.values(projects).reduce((sum, count) => sum + count, 0);

function progressOf(rollout: Read): string {
  const isBack = rollout.state === 'rolling_back';
  const left = (isBack ? rollout.projects.done : rollout.projects.planned) ?? 0;
  const total = totalOf(rollout);
  return `${progressBar(total - left, Math.max(1, total))} ${total - left} of ${counted(total, 'project')}`;
}

function summaryOf(rollout: Read): string {
  const projects = Object.entries(rollout.projects).map(([state, count]) => `${count} ${state}`);
  const { rows_added, fields_changed, fields_kept, fields_in_conflict, rows_pinned } = rollout;
  const pinned = rows_pinned > 0 ? `, ${counted(rows_pinned, 'row')} left out since rolled back before` : '';
  return `Rollout ${rollout.id} of release ${rollout.release_number} of '${rollout.board_title}' is ${rollout.state}, in stage ${rollout.stage} of ${rollout.stages.length}: ${counted(totalOf(rollout), 'project')} (${projects.join(', ') || 'none'}); ${counted(rows_added, 'row')} added, ${counted(fields_changed, 'field')} changed, ${fields_kept} kept since edited, ${fields_in_conflict} of them in conflict${pinned}.`;
}

function nextOf({ id, state, is_soaking, next_at }: Read): string {
  if (state === 'running' && is_soaking && next_at) return `The next stage begins at ${next_at.toISOString()}.`;
  if (state === 'running' && is_soaking) return `Begin the next stage: npx deckhand rollouts advance --id ${id}`;
  if (state === 'paused') return `What failed: npx deckhand rollouts report --id ${id} --state failed`;
  if (state === 'running' || state === 'rolling_back')
    return `The service goes on: npx deckhand rollouts get --id ${id}`;
  return `Report: npx deckhand rollouts report --id ${id}`;
}
