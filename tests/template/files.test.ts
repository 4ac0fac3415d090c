import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FILE_SCHEMA_NAME, templateFileSchema } from '../../shared/templateFile.ts';
import { refusalOf } from '../harness/caller.ts';
import { effectOf } from '../harness/effects.ts';
import { eventsOf } from '../harness/events.ts';
import { testService, withOwnDatabase } from '../harness/service.ts';
import { copiesIn, givenTemplate, sync } from '../harness/template.ts';
import { givenMasterBoard, givenWorld, stored } from '../harness/world.ts';

type Card = { key: string; title: string; description?: string; status?: 'closed'; [field: string]: unknown };
type Group = { key: string; title: string; cards?: Card[]; [field: string]: unknown };

// All rows are compared before and after a call.
withOwnDatabase();

/** Template files of a board with a key of its own; its cards have keys of their own, too. */
async function givenFiles() {
  const { asSuperadmin } = await givenWorld();
  const { templateFiles, masterBoards } = asSuperadmin.rpc;
  const prefix = randomUUID().slice(0, 8);
  const fileOf = (groups: Group[], board: object = {}) => ({
    board: {
      key: prefix,
      title: 'Welcome',
      groups: groups.map(({ cards = [], ...group }) => ({
        ...group,
        cards: cards.map(({ key, ...card }) => ({ key: `${prefix}-${key}`, ...card })),
      })),
      ...board,
    },
  });
  type File = ReturnType<typeof fileOf>;
  const plan = (template: File) => templateFiles.plan.query({ template });
  const apply = (template: File, plan?: string) => templateFiles.import.mutate({ template, plan });
  /** The changes of a plan as lines, with keys as in the test. */
  const planned = async (template: File) =>
    (await plan(template)).changes.map(({ change, noun, key, fields }) =>
      [change, noun, key.replace(`${prefix}-`, ''), ...fields.map(({ field }) => field)].join(' '),
    );
  /** The titles of the draft, in order: `Group: Card, Card`. */
  const draft = async (id: number) =>
    (await masterBoards.get.query({ id })).board.groups.map(
      ({ title, cards }) => `${title}: ${cards.map(({ title }) => title).join(', ')}`,
    );
  return { asSuperadmin, templateFiles, fileOf, plan, apply, planned, draft };
}

const [ONE, TWO, THREE] = [
  { key: 'one', title: 'One' },
  { key: 'two', title: 'Two' },
  { key: 'three', title: 'Three' },
] as const;
const FIRST = { key: 'first', title: 'First', cards: [ONE, TWO] };
const SECOND = { key: 'second', title: 'Second', cards: [THREE] };

describe('a template file', () => {
  it('with new keys creates a board with its groups and cards, all fields and events', async () => {
    const { templateFiles, fileOf, plan, apply, draft } = await givenFiles();
    const look = { description: 'Begin here.', type: 'list', color: 'blue', icon: 'flag', is_collapsed: true };
    const content = { short_description: 'Short.', status: 'closed', priority: 'high', tour_key: 'tour' } as const;
    const card = { ...ONE, ...content, evaluation_check: 'done', is_active: false };
    const file = fileOf([{ ...FIRST, ...look, cards: [card, TWO] }, SECOND], { tool_key: 'none', is_active: false });

    expect(await plan(file)).toMatchObject({ board_id: null, changes: { length: 6 } });
    const { answer, events, uncounted } = await effectOf(() => apply(file));

    expect(uncounted).toEqual([]);
    expect(answer).toMatchObject({ created_count: 6, changed_count: 0, moved_count: 0, deleted_count: 0 });
    expect(events.map(({ type }) => type)).toEqual([
      ...['master_board.created', 'master_board.updated'],
      ...['master_group.created', 'master_group.updated', 'master_group.created'],
      ...['master_card.created', 'master_card.created', 'master_card.created'],
    ]);
    expect((await stored('boards', answer.board_id)).version).toBe(events[1]!.data.version);
    expect((await stored('groups', events[3]!.subject_id!)).version).toBe(events[3]!.data.version);
    expect(await draft(answer.board_id)).toEqual(['First: One, Two', 'Second: Three']);
    const exported = (await templateFiles.export.query({ board_id: answer.board_id })).template.board;
    expect(exported).toMatchObject({ key: file.board.key, tool_key: 'none', is_active: false });
    expect(exported.groups[0]).toMatchObject(file.board.groups[0]!);
  });

  it('that is applied again changes nothing and writes no event, and neither does the exported one', async () => {
    const { templateFiles, fileOf, plan, apply } = await givenFiles();
    const html = '<p onclick="x()">Hello</p><script>x()</script>';
    const file = fileOf([{ ...FIRST, cards: [{ ...ONE, description: html }, TWO] }, SECOND]);
    const { board_id } = await apply(file);
    const { template } = await templateFiles.export.query({ board_id });

    expect(template.board.groups[0]!.cards[0]!.description).toBe('<p>Hello</p>');
    expect(await eventsOf(() => apply(file))).toEqual([]);
    expect(await eventsOf(() => templateFiles.import.mutate({ template: template as typeof file }))).toEqual([]);
    expect((await plan(template as typeof file)).changes).toEqual([]);
  });

  it('with other titles renames: rows and their copies keep their ids', async () => {
    const { fileOf, planned, apply } = await givenFiles();
    const { board_id } = await apply(fileOf([FIRST]));
    const renamed = fileOf([{ ...FIRST, title: 'Begin', cards: [{ ...ONE, title: 'Hello' }, TWO] }], { title: 'Hi' });

    expect(await planned(renamed)).toEqual([
      `changed board ${renamed.board.key} title`,
      'changed group first title',
      'changed card one title',
    ]);
    const { answer, events, uncounted } = await effectOf(() => apply(renamed));

    expect(answer).toMatchObject({ board_id, created_count: 0, changed_count: 3, deleted_count: 0 });
    expect(uncounted).toEqual([]);
    expect(events.map(({ type, data }) => [type, data.fields])).toEqual([
      ['master_board.updated', ['title']],
      ['master_group.updated', ['title']],
      ['master_card.updated', ['title']],
    ]);
  });

  it('without a field clears it', async () => {
    const { fileOf, apply, templateFiles } = await givenFiles();
    const { board_id } = await apply(fileOf([{ ...FIRST, color: 'blue', is_active: false }], { description: 'Old.' }));

    await apply(fileOf([FIRST]));

    const { board } = (await templateFiles.export.query({ board_id })).template;
    expect([board.description, board.groups[0]!.color, board.groups[0]!.is_active]).toEqual([
      ...[undefined, undefined, undefined],
    ]);
  });

  it('with another order moves as few rows as explain it', async () => {
    const { fileOf, planned, apply, draft } = await givenFiles();
    const four = { key: 'four', title: 'Four' };
    const { board_id } = await apply(
      fileOf([
        { ...FIRST, cards: [ONE, TWO, THREE] },
        { key: 'second', title: 'Second' },
      ]),
    );
    const moved = fileOf([
      { key: 'second', title: 'Second' },
      { ...FIRST, cards: [THREE, ONE, four, TWO] },
    ]);

    expect(await planned(moved)).toEqual([
      'moved group first position',
      'moved card three position',
      'created card four',
    ]);
    const { events, uncounted } = await effectOf(() => apply(moved));

    expect(uncounted).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual([
      ...['master_card.created', 'master_card.reordered', 'master_group.reordered'],
    ]);
    expect(await draft(board_id)).toEqual(['Second: ', 'First: Three, One, Four, Two']);
    expect(await planned(moved)).toEqual([]);
  });

  it('moves cards between groups, also into a new one and out of a deleted one, and deletes the others', async () => {
    const { fileOf, planned, apply, draft } = await givenFiles();
    const { board_id } = await apply(fileOf([{ ...FIRST, cards: [ONE, TWO] }, SECOND]));
    const third = { key: 'third', title: 'Third', cards: [{ ...TWO, status: 'closed' as const }] };
    const file = fileOf([{ ...SECOND, cards: [] }, third]);

    expect(await planned(file)).toEqual([
      'created group third',
      ...['changed card two status', 'moved card two group'],
      ...['deleted group first', 'deleted card one', 'deleted card three'],
    ]);
    const { answer, events, uncounted } = await effectOf(() => apply(file));

    expect(uncounted).toEqual([]);
    expect(answer).toMatchObject({ created_count: 1, changed_count: 1, moved_count: 1, deleted_count: 3 });
    expect(events.map(({ type }) => type)).toEqual([
      ...['master_group.created', 'master_card.deleted', 'master_card.updated', 'master_card.reordered'],
      'master_group.deleted',
    ]);
    expect(await draft(board_id)).toEqual(['Second: ', 'Third: Two']);
  });

  it('of a board without stored keys finds rows by their ids; copies in projects stay', async () => {
    const template = await givenTemplate();
    await sync(template);
    const { templateFiles } = template.asSuperadmin.rpc;
    const { template: file } = await templateFiles.export.query({ board_id: template.board });
    expect(file.board).toMatchObject({ key: `board-${template.board}`, groups: { length: 2 } });
    expect(file.board.groups[0]).toMatchObject({ key: `group-${template.groups[0]}`, color: 'blue' });
    file.board.groups = [{ ...file.board.groups[1]!, title: 'Last' }];

    await templateFiles.import.mutate({ template: file as never });

    expect(await stored('groups', template.groups[1])).toMatchObject({ title: 'Last', deleted_at: null });
    expect(await stored('cards', template.cards[0])).toMatchObject({ deleted_at: expect.any(Date) });
    const copies = await copiesIn(template.projects[0], template);
    expect(copies.map(({ title, deleted_at }) => [title, deleted_at])).toEqual([
      ...[
        ['One', null],
        ['Two', null],
      ],
      ['Three', null],
    ]);
  });

  it('whose stored key looks like that of another row: both have keys of their own', async () => {
    const { templateFiles } = await givenFiles();
    const { board: without } = await givenMasterBoard();
    const { board: stored } = await givenMasterBoard({ board: { template_key: `board-${without}` } });

    for (const [board_id, key] of [[stored, `board-${without}`] as const, [without, `board-${without}-`] as const]) {
      const { template } = await templateFiles.export.query({ board_id });
      expect(template.board.key).toBe(key);
      expect(await templateFiles.plan.query({ template: template as never })).toMatchObject({ board_id, changes: [] });
    }
  });
});

describe('a plan', () => {
  it('is required with its id: 422 and no change if the draft or the file has changed since', async () => {
    const { asSuperadmin, fileOf, plan, apply, draft } = await givenFiles();
    const { board_id } = await apply(fileOf([FIRST]));
    const file = fileOf([SECOND]);
    const { plan: id } = await plan(file);
    const outdated = { status: 422, errors: { plan: [expect.stringMatching(/outdated/)] } };

    expect(await refusalOf(apply(fileOf([SECOND, FIRST]), id))).toMatchObject(outdated);
    await asSuperadmin.rpc.masterBoards.update.mutate({ id: board_id, title: 'Changed by somebody' });
    expect(await refusalOf(apply(file, id))).toMatchObject(outdated);

    expect(await draft(board_id)).toEqual(['First: One, Two']);
    await apply(file, (await plan(file)).plan);
    expect(await draft(board_id)).toEqual(['Second: Three']);
  });

  it('of files that create the same board at once: one creates it', async () => {
    const { fileOf, apply, asSuperadmin } = await givenFiles();
    const file = fileOf([FIRST]);

    const answers = await Promise.allSettled([
      apply(file),
      asSuperadmin.alone().rpc.templateFiles.import.mutate({ template: file }),
    ]);

    const created = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.created_count : 0));
    expect(created.sort()).toEqual([0, 4]);
  });
});

describe('422, and nothing changes', () => {
  const refused = async (change: (file: any) => void) => {
    const { fileOf, templateFiles } = await givenFiles();
    const file: any = fileOf([FIRST, SECOND]);
    change(file);
    const [plan, applied] = [
      await refusalOf(templateFiles.plan.query({ template: file })),
      await refusalOf(templateFiles.import.mutate({ template: file })),
    ];
    expect(applied).toEqual(plan);
    return { status: plan.status, errors: plan.errors };
  };
  const CARD = 'template.board.groups.0.cards.1';

  it.each([
    ['an unknown key', (file: any) => (file.version = 1), 'template.version is not a known field.'],
    [
      'an unknown key of a board',
      ({ board }: any) => (board.titel = 'x'),
      'template.board.titel is not a known field: did you mean title?',
    ],
    [
      'an unknown key of a group',
      ({ board }: any) => (board.groups[1].id = 1),
      'template.board.groups.1.id is not a known field.',
    ],
    [
      'an unknown key of a card',
      ({ board }: any) => (board.groups[0].cards[1].owner = 1),
      `${CARD}.owner is not a known field.`,
    ],
    [
      'a group twice',
      ({ board }: any) => (board.groups[1].key = 'first'),
      'template.board.groups.1.key is a duplicate.',
    ],
    [
      'a card in two groups',
      ({ board }: any) => (board.groups[1].cards[0].key = board.groups[0].cards[0].key),
      'template.board.groups.1.cards.0.key is a duplicate.',
    ],
    ['a number as a title', ({ board }: any) => (board.groups[0].cards[1].title = 7), `${CARD}.title must be text.`],
    [
      'a long key',
      ({ board }: any) => (board.key = 'x'.repeat(101)),
      'template.board.key must be at most 100 characters.',
    ],
    [
      'too many cards',
      ({ board }: any) =>
        (board.groups[0].cards = Array.from({ length: 1001 }, (_, at) => ({ key: `${at}`, title: 'x' }))),
      'template.board.groups.0.cards must have at most 1000 elements.',
    ],
    [
      'a description of which nothing is left',
      ({ board }: any) => (board.groups[0].cards[1].description = '<script>x</script>'),
      `${CARD}.description has only HTML that is not allowed: nothing is left of it.`,
    ],
  ])('for %s', async (_, change, message) => {
    const { status, errors } = await refused(change);

    expect(status).toBe(422);
    expect(Object.values(errors ?? {})).toEqual([[message]]);
  });

  it('for a card of another master board', async () => {
    const unique_identifier = randomUUID();
    await givenMasterBoard({ card: { unique_identifier } });

    const { errors } = await refused(({ board }) => (board.groups[0].cards[1].key = unique_identifier));

    expect(errors).toEqual({ [`${CARD}.key`]: [`${CARD}.key belongs to another master board: ${unique_identifier}.`] });
  });
});

describe('a deleted board', () => {
  it('422 for its restoration while another board has its key', async () => {
    const { asSuperadmin, fileOf, apply } = await givenFiles();
    const { board_id: id } = await apply(fileOf([]));
    await asSuperadmin.rpc.masterBoards.delete.mutate({ id });
    await apply(fileOf([]));

    expect(await refusalOf(asSuperadmin.rpc.masterBoards.restore.mutate({ id }))).toMatchObject({
      status: 422,
      errors: { id: ['id has a key of template files that another one has by now.'] },
    });
  });
});

describe('the schema of the file', () => {
  it('is that of the input, in docs and on the service; npm run document:template-file writes it', async () => {
    const { url } = await testService();
    const schema = templateFileSchema();

    expect(JSON.parse(readFileSync(join(import.meta.dirname, '../../docs', FILE_SCHEMA_NAME), 'utf8'))).toEqual(schema);
    expect(await (await fetch(`${url}/${FILE_SCHEMA_NAME}`)).json()).toEqual(schema);
  });
});
