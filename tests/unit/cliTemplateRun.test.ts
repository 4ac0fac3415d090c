import { describe, expect, it } from 'vitest';
import type { Call } from '../../server/cli/command.ts';
import { progressLine, runTemplate } from '../../server/cli/templateRun.ts';
import { givenTerminal } from '../harness/terminal.ts';

const RUN = {
  ...{ id: 8, kind: 'sync', board_id: 1, card_id: null, projects_with_access: 4, projects_skipped: 1 },
  ...{ projects_changed: 3, projects_done: 0, projects_total: 0, cards_added: 6, cards_updated: 0 },
};
const EARLIER_RUN = { ...RUN, id: 7 };
const OTHER_RUNS = [
  { ...RUN, id: 10, kind: 'push_board' },
  { ...RUN, id: 9, card_id: 5 },
];
const SUMMARY = `3 of 4 projects changed, 1 without access; 6 cards added, 0 cards updated.
Report: npx deckhand template-runs report --id 8`;

/** A service whose sync ends after the third poll; each poll finds one more project done. */
function givenSync(progress: (polls: number) => object = () => ({})) {
  const called: string[] = [];
  let end = (_: object) => {};
  let polls = 0;
  const call: Call = async (procedure) => {
    called.push(procedure);
    if (procedure === 'masterBoards.previewSync') {
      const outcomes = ['added', 'skipped', 'added'];
      return { projects: outcomes.map((outcome) => ({ outcome })), next_cursor: null };
    }
    if (procedure === 'masterBoards.sync') return new Promise((resolve) => (end = resolve));
    if (!called.includes('masterBoards.sync')) return { runs: [EARLIER_RUN] };
    if (++polls === 3) end({ synced_count: 4, skipped_no_access: 1 });
    return { runs: [...OTHER_RUNS, { ...RUN, ...progress(polls) }, EARLIER_RUN] };
  };
  return { call, called };
}

const given = (terminal = givenTerminal(), chosen = {}) => ({
  input: { board_id: 1 },
  chosen,
  terminal,
  environment: () => ({}),
});

describe('a sync on a terminal', () => {
  it('shows the preview, asks, shows progress, and names the report', async () => {
    const { call } = givenSync((polls) => ({ projects_done: polls, projects_total: 5 }));
    const terminal = givenTerminal(['y']);

    const outcome = await runTemplate(call, 'masterBoards.sync', given(terminal));

    expect(outcome).toEqual({ result: { synced_count: 4, skipped_no_access: 1 }, message: SUMMARY });
    expect(terminal.shown).toEqual([
      'Preview of 3 projects: 2 added, 1 skipped.\n',
      'Go on? [y/N] ',
      'progress: [######------------------------] 1 of 5 projects',
      'progress: [############------------------] 2 of 5 projects',
      expect.stringMatching(/^progress: /),
      ...terminal.shown.slice(5),
    ]);
    expect(terminal.shown.at(-1)).toBe('progress: ');
  });

  it('does nothing unless the answer is yes, and asks nothing with --yes', async () => {
    const [refused, agreed] = [givenSync(), givenSync()];
    const terminal = givenTerminal();

    await expect(runTemplate(refused.call, 'masterBoards.sync', given(givenTerminal([''])))).rejects.toThrow(
      'Nothing was changed.',
    );
    await runTemplate(agreed.call, 'masterBoards.sync', given(terminal, { yes: true }));

    expect(refused.called).toEqual(['masterBoards.previewSync']);
    expect(agreed.called).not.toContain('masterBoards.previewSync');
    expect(terminal.shown[0]).toBe('progress: | running');
  });

  it('fails as the sync fails, and erases the progress', async () => {
    const terminal = givenTerminal();
    const call: Call = async (procedure) => {
      if (procedure === 'masterBoards.sync') throw new Error('There is no such board.');
      return { runs: [] };
    };

    const run = runTemplate(call, 'masterBoards.sync', given(terminal, { yes: true }));

    await expect(run).rejects.toThrow('There is no such board.');
    expect(terminal.shown.at(-1)).toBe('progress: ');
  });
});

describe('a sync without a terminal', () => {
  it('just runs', async () => {
    const terminal = givenTerminal([], { isPerson: false });
    const call: Call = async (procedure) =>
      procedure === 'templateRuns.list' ? { runs: [EARLIER_RUN] } : { synced_count: 0 };

    const outcome = await runTemplate(call, 'masterBoards.sync', given(terminal));

    expect(outcome).toEqual({ result: { synced_count: 0 } });
    expect(terminal.shown).toEqual([]);
  });
});

describe('the progress', () => {
  it('is a bar up to the end, and a turning line without counts', () => {
    const lineOf = (projects_done: number, projects_total: number) =>
      progressLine({ projects_done, projects_total }, 1);

    expect(lineOf(0, 3)).toBe(`[${'-'.repeat(30)}] 0 of 3 projects`);
    expect(lineOf(0, 1)).toBe(`[${'-'.repeat(30)}] 0 of 1 project`);
    expect(lineOf(4, 3)).toBe(`[${'#'.repeat(30)}] 4 of 3 projects`);
    expect(progressLine(undefined, 3)).toBe('\\ running');
    expect(lineOf(0, 0)).toBe('/ running');
  });
});
