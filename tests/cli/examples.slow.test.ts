import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { DEFINITIONS } from '../../server/cli/definitions.ts';
import { EXAMPLE_URL } from '../../server/cli/example.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { query } from '../../server/database/query.ts';
import { givenDemoService } from '../harness/demo.ts';
import { givenDirectory } from '../harness/process.ts';
import { givenTerminal } from '../harness/terminal.ts';

/** The examples at the end of each command's help, run on one service with the demo data. */

/** Examples that work only after another call, and what they answer without it. */
const AFTER_OTHERS = {
  'account accept-invitation': 'There is no such invitation.',
  'account decline-invitation': 'There is no such invitation.',
  'account confirm-address': 'This link was used, has expired, or is incomplete. Ask for another one.',
  'account unlink-identity': 'You have not linked such an identity.',
  'account confirm-second-factor': 'code is wrong: check the clock of the device.',
  'account drop-second-factor': 'No second factor is enabled.',
  'account renew-recovery-codes': 'No second factor is enabled.',
  'identity-rules create': 'user_id is not a service account.',
  'identity-rules update': 'There is no such identity rule.',
  'identity-rules delete': 'There is no such identity rule.',
  // Its neighbour has approved the version.
  'themes reject-version': 'Only a pending version can be rejected.',
  // Their group and card were deleted by their own examples.
  'cards restore': 'The group "In progress" is deleted. Restore it first.',
  'comments restore': 'The card "Write the launch post" is deleted. Restore it first.',
  // Their neighbour has aborted the rollout.
  'rollouts advance': 'This rollout is aborted. This works only while it is running.',
  'rollouts retry-failed': 'This rollout is aborted. This works only while it is running, paused, done.',
  'webhooks redeliver': 'event_id is not an event of this project that is still kept.',
  'webhooks resend': 'event_id is not an event of this project that is still kept.',
  'webhooks skip': 'This is not the event that the webhook sends next.',
};

/** It never ends; tests/cli/events.slow.test.ts runs it. */
const ENDLESS = 'events follow';

/** They end a session or a membership that others need. */
const LAST =
  /^(account (sign-out.*|change-password|erase)|users (sign-out|update|deactivate|activate)|members (leave|remove))$/;

/** Children are deleted before their parents, and restored after them. */
function rankOf(name: string): number {
  // Their role is still to be taken from them.
  if (name === 'users erase') return 3.5;
  if (LAST.test(name)) return ['account change-password', 'account erase'].indexOf(name) + 4;
  return name.endsWith(' restore') ? 2 : name.endsWith(' delete') ? 1 : 0;
}
const withExample = [...DEFINITIONS.keys()].filter((name) => name !== ENDLESS && DEFINITIONS.get(name)?.example?.());
const inOrder = [0, 1, 2, 3, 3.5, 4, 5].flatMap((rank) => {
  const names = withExample.filter((name) => rankOf(name) === rank);
  return rank === 1 ? names.reverse() : names;
});

const NEW_PASSWORD = 'a long sentence of words';

/** The words of a line of a shell. */
const wordsOf = (line: string) =>
  Array.from(line.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g), ([, quoted, plain = '']) =>
    quoted === undefined ? plain : quoted.replaceAll("'\\''", "'"),
  );

it('the example of each command runs as it is, after the login above it', async () => {
  const [service, HOME] = await Promise.all([givenDemoService(), givenDirectory()]);
  const run = (line: string, password = 'demo-password') => {
    const words = wordsOf(line).slice(2);
    const ask = async (question: string) => (question.includes('new') ? NEW_PASSWORD : password);
    const terminal = { ...givenTerminal([], { isPerson: false }), ask };
    const toService = words.map((word) => word.replace(EXAMPLE_URL, service.url));
    return runCommandLine(toService, () => ({ HOME }), terminal);
  };

  const mail = sql`insert into mails (id, kind, email, state) values (1, 'invitation', 'new@example.com', 'failed')`;
  await query(service.db, mail);
  await query(service.db, sql`select setval(pg_get_serial_sequence('mails', 'id'), 1)`);
  const refused: Record<string, string> = {};
  let loggedIn = '';
  for (const name of inOrder) {
    const { printed = '' } = await runCommandLine([...name.split(' '), '--help'], () => ({ HOME }));
    const [login = '', example = ''] = printed.split('\n').filter((line) => line.startsWith('  npx deckhand '));
    const password = name === 'account erase' ? NEW_PASSWORD : undefined;
    if (login !== loggedIn || LAST.test(name))
      expect(await run(login, password), `${name}: ${login}`).toMatchObject({ exitCode: 0 });
    loggedIn = login;
    const { exitCode, complaint } = await run(example, name === 'users create' ? NEW_PASSWORD : undefined);
    if (exitCode !== 0) refused[name] = complaint!.split('\n')[0]!;
  }

  expect(refused).toEqual(AFTER_OTHERS);
  await service.close();
}, 300_000);
