import { describe, expect, it } from 'vitest';
import type { Call } from '../../server/cli/command.ts';
import { confirmErasure, runDeletion } from '../../server/cli/deletion.ts';
import { forbidden, notFound } from '../../shared/errors.ts';
import { givenTerminal } from '../harness/terminal.ts';

type Deletion = { answer?: string; chosen?: object; input?: object; isPerson?: boolean };

/** Deletes the row 7 of a service with this preview. */
async function deleted(procedure: string, preview: object | Error, options: Deletion = {}) {
  const { answer = 'y', chosen = {}, input, isPerson = true } = options;
  const called: [string, unknown][] = [];
  const call: Call = async (procedure, input) => {
    called.push([procedure, input]);
    if (!procedure.endsWith('.preview')) return undefined;
    if (preview instanceof Error) throw preview;
    return { title: null, groups_count: 0, cards_count: 0, comments_count: 0, ...preview };
  };
  const terminal = givenTerminal([answer], { isPerson });
  const given = { input: { id: 7, ...input }, chosen, terminal, environment: () => ({}) };

  const { message } = await runDeletion(call, procedure, given).catch((error: Error) => error);
  return { message, called, shown: terminal.shown };
}

const LAUNCH = { title: 'Launch', groups_count: 3, cards_count: 400 };
const PREVIEWED = ['trash.preview', { type: 'board', id: 7 }];

describe('a deletion', () => {
  it('previews, asks, deletes, and says how to undo it', async () => {
    const { message, called, shown } = await deleted('boards.delete', LAUNCH, { chosen: { as: 'me@example.test' } });

    expect(shown).toEqual(["Delete board 'Launch' with 3 groups and 400 cards? [y/N] "]);
    expect(message).toBe(
      "Deleted board 'Launch' with 3 groups and 400 cards.\nGet it back: npx deckhand boards restore --id 7 --as me@example.test",
    );
    expect(called).toEqual([PREVIEWED, ['boards.delete', { id: 7 }]]);
  });

  it.each([
    ['groups.delete', { title: 'Doing', cards_count: 1 }, {}, "group 'Doing' with 1 card"],
    ['comments.delete', { comments_count: 2 }, {}, 'comment 7 with 2 replies'],
    ['comments.delete', { comments_count: 1 }, {}, 'comment 7 with 1 reply'],
    ['tags.delete', { title: 'Text', cards_count: 12 }, {}, "tag 'Text' of 12 cards"],
    ['masterGroups.delete', { title: 'Start', cards_count: 2 }, {}, "master group 'Start' with 2 cards"],
    [
      'masterCards.delete',
      { title: 'Step' },
      { delete_from_projects: true },
      "master card 'Step' with its copies in all projects",
    ],
    ['webhooks.delete', {}, {}, 'webhook 7'],
  ])('%s names what goes, of %j', async (procedure, preview, input, what) => {
    expect((await deleted(procedure, preview, { input })).shown).toEqual([`Delete ${what}? [y/N] `]);
  });

  it.each(['', 'n', 'no', 'yep'])('deletes nothing after the answer %j', async (answer) => {
    const { message, called } = await deleted('boards.delete', LAUNCH, { answer });

    expect({ message, called }).toEqual({ message: 'Nothing was deleted.', called: [PREVIEWED] });
  });

  it.each([notFound('There is no such board.'), new Error('No response.')])(
    'deletes nothing, and does not ask, if the preview fails with %s',
    async (error) => {
      expect(await deleted('boards.delete', error)).toEqual({ message: error.message, called: [PREVIEWED], shown: [] });
    },
  );

  it.each([
    ['with --yes', { chosen: { yes: true } }, ''],
    ['with --yes on the database', { chosen: { yes: true, url: '' } }, " --url ''"],
    ['without a terminal', { isPerson: false }, ''],
  ])('does not ask %s, and needs no right to read', async (_, options, where) => {
    const error = forbidden('The key lacks the scope boards:read.', 'scope_missing');

    const { message, shown } = await deleted('cards.delete', error, options);

    expect(shown).toEqual([]);
    expect(message).toBe(`Deleted card 7.\nGet it back: npx deckhand cards restore --id 7${where}`);
  });
});

describe('an erasure', () => {
  const given = (answer: string, input: object | undefined, { isPerson = true, chosen = {} } = {}) => {
    const terminal = givenTerminal([answer], { isPerson });
    return { input, chosen, terminal, environment: () => ({}) };
  };

  it.each([
    [{ id: 7 }, 'user 7'],
    [undefined, 'your account'],
  ])('asks before it erases %j', async (input, who) => {
    const asked = given('y', input);
    await confirmErasure(asked);

    expect(asked.terminal.shown).toEqual([`Erase ${who} for good? [y/N] `]);
    await expect(confirmErasure(given('', input))).rejects.toThrow('Nothing was erased.');
  });

  it.each([{ isPerson: false }, { chosen: { yes: true } }])('asks nobody with %j', async (options) => {
    const silent = given('', { id: 7 }, options);
    await confirmErasure(silent);

    expect(silent.terminal.shown).toEqual([]);
  });
});
