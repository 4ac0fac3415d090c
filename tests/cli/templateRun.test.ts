import { describe, expect, it } from 'vitest';
import type { Call } from '../../server/cli/command.ts';
import { progressLine, runTemplate } from '../../server/cli/templateRun.ts';
import { type FakeTerminal, givenTerminal } from '../harness/terminal.ts';

const RUN = {
  ...{ id: 8, kind: 'sync', board_id: 1, card_id: null, projects_with_access: 4, projects_skipped: 1 },
  ...{ projects_changed: 3, projects_done: 0, projects_total: 0, cards_added: 6, cards_updated: 0 },
};
const EARLIER_RUN = { ...RUN, id: 7 };
const OTHER_RUNS = [
  { ...RUN, id: 10, kind: 'push_board' },
  { ...RUN, id: 9, card_id: 5 },
];
const RESULT = { synced_count: 4, skipped_no_access: 1 };

type Sync = { terminal?: FakeTerminal; chosen?: object; isListed?: boolean; failure?: Error };

/** Syncs on a service where that ends after the third poll, or fails; each poll finds one more of five projects done. */
async function synced({ terminal = givenTerminal(), chosen = {}, isListed = true, failure }: Sync = {}) {
  const called: string[] = [];
  let end = (_: object) => {};
  let polls = 0;
  const call: Call = async (procedure) => {
    called.push(procedure);
    if (procedure === 'masterBoards.previewSync') {
      const outcomes = ['added', 'skipped', 'added'];
      return { projects: outcomes.map((outcome) => ({ outcome })), next_cursor: null };
    }
    if (procedure === 'masterBoards.sync') {
      if (failure) throw failure;
      return terminal.canSee ? new Promise((resolve) => (end = resolve)) : RESULT;
    }
    if (!isListed || !called.includes('masterBoards.sync')) return { runs: [EARLIER_RUN] };
    if (++polls === 3) end(RESULT);
    return { runs: [...OTHER_RUNS, { ...RUN, projects_done: polls, projects_total: 5 }, EARLIER_RUN] };
  };
  const given = { input: { board_id: 1 }, chosen, terminal, environment: () => ({}) };
  const outcome = await runTemplate(call, 'masterBoards.sync', given).catch((error: Error) => error.message);
  return { outcome, called, shown: terminal.shown };
}

const OUTCOME = {
  result: RESULT,
  message: `3 of 4 projects changed, 1 without access; 6 cards added, 0 cards updated.
Report: npx deckhand template-runs report --id 8`,
};

describe('a sync', () => {
  it('shows the preview, asks, shows progress, and names the report', async () => {
    const { outcome, shown } = await synced({ terminal: givenTerminal(['y']) });

    expect(outcome).toEqual(OUTCOME);
    expect(shown.slice(0, 4)).toEqual([
      'Preview of 3 projects: 2 added, 1 skipped.\n',
      'Go on? [y/N] ',
      'progress: [######------------------------] 1 of 5 projects',
      'progress: [############------------------] 2 of 5 projects',
    ]);
    expect(shown.at(-1)).toBe('progress: ');
  });

  it('does nothing unless the answer is yes', async () => {
    const { outcome, called } = await synced({ terminal: givenTerminal(['']) });

    expect({ outcome, called }).toEqual({ outcome: 'Nothing was changed.', called: ['masterBoards.previewSync'] });
  });

  it('asks nothing with --yes; if it fails, erases the progress', async () => {
    const failure = new Error('There is no such board.');

    const { outcome, called, shown } = await synced({ chosen: { yes: true }, failure });

    expect(outcome).toBe('There is no such board.');
    expect(called).not.toContain('masterBoards.previewSync');
    expect(shown.at(-1)).toBe('progress: ');
  });

  it.each([
    ['the report', true, OUTCOME],
    ['the result alone if its run is not found', false, { result: RESULT }],
  ])('without a terminal shows %s', async (_, isListed, expected) => {
    const terminal = givenTerminal([], { isPerson: false });

    const { outcome, shown } = await synced({ terminal, isListed });

    expect({ outcome, shown }).toEqual({ outcome: expected, shown: [] });
  });
});

describe('the progress', () => {
  it.each([
    [0, 3, `[${'-'.repeat(30)}] 0 of 3 projects`],
    [0, 1, `[${'-'.repeat(30)}] 0 of 1 project`],
    [4, 3, `[${'#'.repeat(30)}] 4 of 3 projects`],
    [0, 0, '/ running'],
  ])('of %j of %j is %s', (projects_done, projects_total, line) => {
    expect(progressLine({ projects_done, projects_total }, 1)).toBe(line);
  });

  it('of a run that is not found is a turning line', () => {
    expect([0, 1, 2, 3].map((turn) => progressLine(undefined, turn)[0])).toEqual(['|', '/', '-', '\\']);
  });
});
