import { describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { processTerminal } from '../../server/cli/terminal.ts';
import { asText } from '../../server/cli/text.ts';
import { visible } from '../../server/cli/visible.ts';
import { shortened, widthOf, wrapped } from '../../server/cli/width.ts';
import { givenTerminal } from '../harness/terminal.ts';

describe('the output', () => {
  it('shows a board with its groups and their cards', () => {
    const due_date = new Date('2026-01-31T09:30:00Z');
    const cards = [
      { id: 1, title: 'First', status: 'open', owner_id: 3, due_date, created_at: due_date, deleted_at: null },
      { id: 2, title: 'Second\n', status: 'closed', owner_id: null, due_date: null, deleted_at: null },
    ];
    const groups = [
      { id: 7, title: 'To do', position: 1, cards },
      { id: 8, title: 'Done', position: 2, cards: [] },
    ];

    expect(asText({ board: { id: 2, title: 'Launch plan', created_at: due_date, groups } })).toBe(`2  Launch plan

  7  To do
    id  title    status  owner_id  due_date
    1   First    open    3         2026-01-31T09:30:00.000Z
    2   Second   closed

  8  Done`);
  });

  it('names lists that are beside something else', () => {
    const user = { id: 2, name: 'Ann' };
    const sole_owner_of = [{ project_id: 1, name: 'Launch' }];

    expect(asText({ user, sole_owner_of, paused_webhooks: [], sessions_ended: 3 })).toBe(`id    2
name  Ann
sole_owner_of:
project_id  name
1           Launch
sessions_ended  3`);
    expect(asText({ user, reactivated: [] })).toContain('\nreactivated: none');
    expect(asText({ users: [] })).toBe('None.');
  });

  it('shows the results of many rows as a table, with the message of each error', () => {
    const error = { status: 422, reason: 'invalid_input', message: 'title is required.' };
    const card = { id: 24, project_id: 1, group_id: 7, position: 1 };

    expect(asText({ results: [{ error }, { card }] })).toBe(`id  row  error               project_id  group_id  position
    0    title is required.
24  1                        1           7         1`);
  });

  it('shows comments as threads', () => {
    const created_at = new Date('2026-01-31T09:30:00Z');
    const reply = { id: 5, user_id: 2, comment: 'Soon.', is_read: false, created_at };
    const thread = { id: 4, user_id: 1, comment: 'When?', created_at, replies: [reply], replies_next_cursor: 'x' };

    expect(asText({ threads: [thread, { ...thread, replies: [], replies_next_cursor: null }], next_cursor: 'y' })).toBe(
      `4  When?  (user_id 1, created_at 2026-01-31T09:30:00.000Z)
  id  comment  user_id  created_at
  5   Soon.    2        2026-01-31T09:30:00.000Z
  More: npx deckhand comments list-replies --id 4 --cursor x

4  When?  (user_id 1, created_at 2026-01-31T09:30:00.000Z)
More: --cursor y, or --all`,
    );
  });

  it('shows which webhooks a call has switched off, and data as JSON', () => {
    const paused = [{ id: 3, project_id: 1, host: 'example.com' }];

    expect(asText({ paused_webhooks: [] })).toBe('Done.');
    expect(asText({ paused_webhooks: paused })).toMatch(/^Webhooks that are switched off by it:\n.*example\.com/s);
    expect(asText({ entries: [{ id: 1, data: { count: 2 } }] })).toContain('{"count":2}');
  });

  it('leaves out columns that nobody reads, and cuts nothing without a terminal', () => {
    const row = { project_id: 1, platform_id: 1, id: 3, owner_id: null, title: 'x'.repeat(70), updated_at: new Date() };

    expect(asText({ cards: [row], next_cursor: null })).toBe(`id  title${' '.repeat(65)}  project_id
3   ${'x'.repeat(70)}  1`);
    expect(asText({ projects: [{ id: 1, platform_id: 2, tools: [] }] })).toBe('id  platform_id  tools\n1   2');
    expect(asText({ cards: [], next_cursor: null })).toBe('None.');
    expect(asText({ card: { id: 1, tag_id: null }, projects_updated: 2 })).toBe('id  1\nprojects_updated  2');
    expect(asText({ recovery_codes: ['a', 'b'] })).toBe('a\nb');
    expect(asText(undefined)).toBe('Done.');
  });
});

describe('on a terminal', () => {
  const created_at = new Date('2026-01-31T09:30:00Z');
  const later = new Date('2026-02-01T09:30:00Z');
  const cards = [
    { id: 1, title: 'Write the launch post, and have it read', project_id: 1, owner_id: 3, status: 'open', created_at },
    { id: 22, title: '漢字カード 🎉 und ein Rest', project_id: 1, owner_id: 4, status: 'to_check', created_at: later },
  ];
  const linesAt = (width: number, columns?: string[]) => asText({ cards }, { width, columns }).split('\n');

  it('shows all columns while they fit, with times to the minute, and shortens the widest texts first', () => {
    expect(linesAt(94)).toEqual([
      'id  title                                    project_id  owner_id  status    created_at',
      '1   Write the launch post, and have it read  1           3         open      2026-01-31 09:30Z',
      '22  漢字カード 🎉 und ein Rest               1           4         to_check  2026-02-01 09:30Z',
    ]);
    expect(linesAt(81).slice(1)).toEqual([
      '1   Write the launch post, an…  1           3         open      2026-01-31 09:30Z',
      '22  漢字カード 🎉 und ein Rest  1           4         to_check  2026-02-01 09:30Z',
    ]);
  });

  it('hides what is alike in all rows, then the time of creation, then ids of other rows, and says so', () => {
    expect(linesAt(50)).toEqual([
      'id  title                       owner_id  status',
      '1   Write the launch post, an…  3         open',
      '22  漢字カード 🎉 und ein Rest  4         to_check',
      '',
      'Not shown: project_id, created_at. Choose with',
      '--columns NAME,NAME; --json shows all.',
    ]);
    expect(linesAt(30)[0]).toMatch(/^id +title +status$/);
    expect(linesAt(20).slice(0, 3)).toEqual(['id  title', '1   Write the launc…', '22  漢字カード 🎉 u…']);
  });

  it('has no line of a table that is wider than the terminal', () => {
    for (const width of [1, 10, 30, 40, 55, 80, 120]) {
      const widest = Math.max(...linesAt(width).slice(0, 3).map(widthOf));
      expect(widest).toBeLessThanOrEqual(Math.max(width, 'id  …'.length));
    }
  });

  it('shows the columns of --columns, in their order', () => {
    expect(linesAt(80, ['status', 'id'])).toEqual(['status    id', 'open      1', 'to_check  22']);
    expect(asText({ card: cards[0] }, { width: 80, columns: ['title'] })).toBe(
      'title  Write the launch post, and have it read',
    );
    expect(asText({ cards: [] }, { width: 80, columns: ['nothing'] })).toBe('None.');
    expect(() => linesAt(80, ['id', 'titel'])).toThrow(
      'There is no column titel. There are id, title, project_id, owner_id, status, created_at.',
    );
    const board = { id: 2, title: 'Plan', groups: [{ id: 7, title: 'To do', cards }] };
    expect(asText({ board }, { width: 80, columns: ['id', 'owner_id'] })).toContain('\n    id  owner_id\n    1   3\n');
  });

  it('shows one row that does not fit as its fields, and breaks long values', () => {
    expect(asText({ cards: [cards[0]] }, { width: 30 })).toBe(`id          1
title       Write the launch
            post, and have it
            read
project_id  1
owner_id    3
status      open
created_at  2026-01-31T09:30:0
            0.000Z`);
  });
});

describe('the terminal', () => {
  it('gets no characters that it would act on, in messages and progress', () => {
    const written: unknown[] = [];
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(text) > 0);
    const { isTTY } = process.stderr;
    process.stderr.isTTY = true;

    processTerminal.write('a\x1b[31m\tb\n');
    processTerminal.update('\u202e1 of 2');
    processTerminal.update('');
    process.stderr.isTTY = false;
    processTerminal.update('nobody sees it');
    process.stderr.isTTY = isTTY;
    write.mockRestore();

    expect(written).toEqual(['a\\u001b[31m\tb\n', '\r\\u202e1 of 2\x1b[K', '\r\x1b[K']);
  });

  it('gets wide characters as they are, and tables that are aligned despite those that are not', () => {
    const names = ['\u202ex', 'y'].map((name, at) => ({ id: at + 1, name, color: 'red' }));
    const joined = '漢 👩‍👩‍👧 e\u0301 نمی‌خواهم';

    expect(visible(joined)).toBe(joined);
    expect(asText({ tags: names })).toBe(`id  name     color\n1   \\u202ex  red\n2   y        red`);
  });
});

describe('the width of a text', () => {
  it('counts wide characters twice, and what is combined once', () => {
    expect(['abc', '漢字', '🎉', '👩‍👩‍👧', 'e\u0301', 'ﾊﾝ'].map(widthOf)).toEqual([3, 4, 2, 2, 1, 2]);
  });

  it('is never exceeded, and nothing is cut within a character', () => {
    expect(shortened('漢字漢字', 6)).toBe('漢字…');
    expect(shortened('漢字漢', 6)).toBe('漢字漢');
    expect(shortened('a👩‍👩‍👧bc', 3)).toBe('a…');
    expect(wrapped('漢字漢字 ab abcdefg', 5, 1)).toBe('漢字\n 漢字\n ab\n abcde\n fg');
    expect(wrapped('漢', 1)).toBe('漢');
  });
});

describe('texts of a service', () => {
  /** Runs a command on a service that answers with this. */
  async function answerOf(words: string, body: object, status = 200) {
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(Response.json(body, { status }));
    const settings = { DECKHAND_URL: 'https://deckhand.test', DECKHAND_KEY: 'dkh_x' };
    const answer = await runCommandLine(words.split(' '), () => settings, givenTerminal());
    vi.restoreAllMocks();
    return answer;
  }
  const resultOf = (json: object) => ({ result: { data: { json } } });
  const HOSTILE = 'a\x1b]0;b\x07\x9b31m\u202ec\u2028d\re';
  const SHOWN = String.raw`a\u001b]0;b\u0007\u009b31m\u202ec\u2028d\u000de`;
  const TAGS = resultOf({ tags: [{ id: 1, [HOSTILE]: HOSTILE }] });
  const BOARD = resultOf({
    board: { id: 1, title: HOSTILE, groups: [{ id: 2, title: HOSTILE, cards: [{ id: 3, title: HOSTILE }] }] },
  });
  const REFUSAL = { error: { json: { code: -32603, message: HOSTILE, data: { code: 'FORBIDDEN', httpStatus: 403 } } } };

  it.each([
    ['tags list', TAGS, 200, { exitCode: 0, printed: `id  ${SHOWN}\n1   ${SHOWN}` }],
    [
      'boards get --id 1',
      BOARD,
      200,
      { exitCode: 0, printed: `1  ${SHOWN}\n\n  2  ${SHOWN}\n    id  title\n    3   ${SHOWN}` },
    ],
    ['boards list', REFUSAL, 403, { exitCode: 1, complaint: SHOWN }],
  ])('have no characters that a terminal acts on: %s', async (words, body, status, expected) => {
    expect(await answerOf(words, body, status)).toEqual(expected);
  });

  it('are exact in JSON, and escaped there', async () => {
    const { printed } = await answerOf('tags list --json', TAGS);
    const { complaint } = await answerOf('boards list --json', REFUSAL, 403);

    expect(`${printed}${complaint}`).not.toMatch(/[^\n\x20-\x7e]/);
    expect(JSON.parse(printed!)).toEqual({ tags: [{ id: 1, [HOSTILE]: HOSTILE }] });
    expect(JSON.parse(complaint!).error.message).toBe(HOSTILE);
  });
});
