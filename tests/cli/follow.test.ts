import { describe, expect, it } from 'vitest';
import { deliveryLine, lineOf } from '../../server/cli/eventFollow.ts';
import type { FollowedEvent } from '../../server/cli/forward.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { failure, givenTerminal } from '../harness/terminal.ts';

const event = (changes: Partial<FollowedEvent> = {}): FollowedEvent => ({
  ...{ id: '1042', type: 'card.moved', created_at: new Date('2026-01-31T09:30:00.123Z'), data: {} },
  ...{ platform_id: 1, project_id: 7, user_id: 3, key_id: null, surface: 'rest', request_id: null, subject_id: 12 },
  ...changes,
});

describe('a line of events follow', () => {
  it.each([
    [{}, '2026-01-31 09:30:00Z  card.moved  project 7  card 12  by user 3'],
    [{ key_id: 5 }, '2026-01-31 09:30:00Z  card.moved  project 7  card 12  by user 3 with key 5'],
    [
      { type: 'master_board.updated', project_id: null, user_id: null, surface: 'command_line' },
      '2026-01-31 09:30:00Z  master_board.updated  no project  master board 12  by command line',
    ],
    [
      { type: 'template.applied', subject_id: null, user_id: null, surface: 'service' },
      '2026-01-31 09:30:00Z  template.applied  project 7  by service',
    ],
  ])('with %j is %s', (changes, line) => {
    expect(lineOf(event(changes))).toBe(line);
  });

  it.each([
    [{ status: 200, error: undefined, milliseconds: 12 }, '→ 200 in 12 ms'],
    [{ status: 500, error: 'It answered 500.', milliseconds: 3 }, '→ not delivered in 3 ms: It answered 500.'],
  ])('after the delivery %j is %s', (delivery, line) => {
    expect(deliveryLine(delivery)).toBe(line);
  });
});

describe('events follow', () => {
  it.each([
    ['--forward localhost:4000', '--forward must be an address such as http://localhost:4000/hook'],
    ['--forward ftp://localhost/', '--forward must be an address'],
    ['--forward http://user:x@localhost/', '--forward must be an address'],
    ['--forward http://localhost/ --secret whsec_c2hvcnQ=', '--secret must be whsec_ with 24 to 64 bytes'],
    [`--forward http://localhost/ --secret ${'x'.repeat(50)}`, '--secret must be whsec_ with 24 to 64 bytes'],
    ['--secret whsec_x', '--secret is for --forward.'],
    ['--as x@y.test', 'There is no option --as.'],
  ])('2 for %s', async (words, message) => {
    const run = runCommandLine(
      ['events', 'follow', ...words.split(' ')],
      () => ({ HOME: '/nonexistent' }),
      givenTerminal(),
    );

    expect(await run).toMatchObject(failure(2, message));
  });
});
