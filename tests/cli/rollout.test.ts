import { expect, it } from 'vitest';
import { runRollout } from '../../server/cli/rollout.ts';
import { givenTerminal } from '../harness/terminal.ts';

const ROLLOUT = {
  ...{
    id: 4,
    release_number: 2,
    board_title: 'Onboarding',
    state: 'planned',
    is_soaking: false,
    next_at: null,
    stage: 1,
    stages: [{}, {}],
  },
  ...{
    projects: { planned: 2 },
    rows_added: 2,
    fields_changed: 3,
    fields_kept: 1,
    fields_in_conflict: 1,
    rows_pinned: 0,
  },
};

/** A service that does one project between two polls, and then waits for the next stage. */
const service = () => {
  let done = -1;
  return async (procedure: string) => {
    if (procedure !== 'rollouts.get') return { rollout: { ...ROLLOUT, state: 'running' } };
    const rollout = done < 0 ? ROLLOUT : { ...ROLLOUT, state: 'running', projects: { planned: 2 - done, done } };
    done++;
    return { rollout: { ...rollout, is_soaking: done > 2 } };
  };
};

const given = (terminal: ReturnType<typeof givenTerminal>) => ({
  input: { id: 4 },
  chosen: {},
  terminal,
  environment: () => ({}),
});

it('a rollout says what it will do, asks, shows progress, and says what comes next', async () => {
  const terminal = givenTerminal(['y']);

  const { message } = await runRollout(service(), 'rollouts.start', given(terminal));

  expect(terminal.shown.join()).toContain('2 rows added, 3 fields changed, 1 kept since edited, 1 of them in conflict');
  expect(terminal.shown.join()).toContain('1 of 2 projects');
  expect(message).toContain('npx deckhand rollouts advance --id 4');
});

it('a rollout that is refused changes nothing, and programs are not asked', async () => {
  const refused = runRollout(service(), 'rollouts.rollback', given(givenTerminal(['n'])));
  await expect(refused).rejects.toThrow('Nothing was changed.');

  const { result, message } = await runRollout(
    service(),
    'rollouts.start',
    given(givenTerminal([], { isPerson: false })),
  );
  expect([result, message]).toMatchObject([{ rollout: { state: 'running' } }, undefined]);
});
