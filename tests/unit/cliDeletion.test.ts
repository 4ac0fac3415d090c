import { describe, expect, it } from 'vitest';
import type { Call } from '../../server/cli/command.ts';
import { runDeletion } from '../../server/cli/deletion.ts';
import { forbidden, notFound } from '../../shared/errors.ts';
import { givenTerminal } from '../harness/terminal.ts';

const NOTHING = { title: null, groups_count: 0, cards_count: 0, comments_count: 0 };

/** A service with this preview. */
function givenService(preview: object | Error) {
  const called: [string, unknown][] = [];
  const call: Call = async (procedure, input) => {
    called.push([procedure, input]);
    if (!procedure.endsWith('.preview')) return undefined;
    if (preview instanceof Error) throw preview;
    return { ...NOTHING, ...preview };
  };
  return { call, called };
}

const given = (terminal = givenTerminal(), chosen = {}, input = {}) => ({
  input: { id: 7, ...input },
  chosen,
  terminal,
  environment: () => ({}),
});

const LAUNCH = { title: 'Launch', groups_count: 3, cards_count: 400 };

describe('a deletion on a terminal', () => {
  it('names what goes, asks, and says how to get it back', async () => {
    const { call, called } = givenService(LAUNCH);
    const terminal = givenTerminal(['y']);

    const { message } = await runDeletion(call, 'boards.delete', given(terminal, { as: 'me@example.test' }));

    expect(terminal.shown).toEqual(["Delete board 'Launch' with 3 groups and 400 cards? [y/N] "]);
    expect(message).toBe(
      "Deleted board 'Launch' with 3 groups and 400 cards.\nGet it back: npx deckhand boards restore --id 7 --as me@example.test",
    );
    expect(called).toEqual([
      ['trash.preview', { type: 'board', id: 7 }],
      ['boards.delete', { id: 7 }],
    ]);
  });

  it.each(['', 'n', 'no', 'yep'])('deletes nothing after the answer %j', async (answer) => {
    const { call, called } = givenService(LAUNCH);

    await expect(runDeletion(call, 'boards.delete', given(givenTerminal([answer])))).rejects.toThrow(
      'Nothing was deleted.',
    );

    expect(called.map(([procedure]) => procedure)).toEqual(['trash.preview']);
  });

  it.each([
    ['groups.delete', { title: 'Doing', cards_count: 1 }, "group 'Doing' with 1 card"],
    ['comments.delete', { comments_count: 2 }, 'comment 7 with 2 replies'],
    ['tags.delete', { title: 'Text', cards_count: 12 }, "tag 'Text' of 12 cards"],
    ['masterGroups.delete', { title: 'Start', cards_count: 2 }, "master group 'Start' with 2 cards"],
    ['webhooks.delete', {}, 'webhook 7'],
  ])('%s says what it is', async (procedure, preview, what) => {
    const terminal = givenTerminal(['y']);

    await runDeletion(givenService(preview).call, procedure, given(terminal));

    expect(terminal.shown).toEqual([`Delete ${what}? [y/N] `]);
  });

  it('says that the copies of a master card go, too', async () => {
    const terminal = givenTerminal(['y']);
    const { call } = givenService({ title: 'Step' });

    await runDeletion(call, 'masterCards.delete', given(terminal, {}, { delete_from_projects: true }));

    expect(terminal.shown).toEqual(["Delete master card 'Step' with its copies in all projects? [y/N] "]);
  });

  it('does not ask about a row that does not exist', async () => {
    const terminal = givenTerminal(['y']);

    const deletion = runDeletion(
      givenService(notFound('There is no such board.')).call,
      'boards.delete',
      given(terminal),
    );

    await expect(deletion).rejects.toThrow('There is no such board.');
    expect(terminal.shown).toEqual([]);
  });
});

it('a deletion on the database, chosen with an empty --url, is undone there', async () => {
  const { call } = givenService(NOTHING);

  const { message } = await runDeletion(call, 'cards.delete', given(givenTerminal([]), { yes: true, url: '' }));

  expect(message).toContain("npx deckhand cards restore --id 7 --url ''");
});

it('a deletion deletes nothing if the service does not answer the preview', async () => {
  const { call, called } = givenService(new Error('No response.'));

  await expect(runDeletion(call, 'cards.delete', given(givenTerminal([]), { yes: true }))).rejects.toThrow(
    'No response.',
  );
  expect(called.map(([procedure]) => procedure)).toEqual(['trash.preview']);
});

describe('a deletion does not ask', () => {
  it.each([
    ['with --yes', givenTerminal([]), { yes: true }],
    ['without a terminal', givenTerminal([], { isPerson: false }), {}],
  ])('%s', async (_, terminal, chosen) => {
    const { call } = givenService(forbidden('The key lacks the scope boards:read.', 'scope_missing'));

    const { message } = await runDeletion(call, 'cards.delete', given(terminal, chosen));

    expect(terminal.shown).toEqual([]);
    expect(message).toBe('Deleted card 7.\nGet it back: npx deckhand cards restore --id 7');
  });
});
