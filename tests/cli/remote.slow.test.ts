import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { codeAt } from '../harness/codes.ts';
import { givenDemoService } from '../harness/demo.ts';
import { givenDirectory, signIn } from '../harness/process.ts';
import { failure, givenTerminal } from '../harness/terminal.ts';

/** Commands with `--url`, on a service with the demo data. */

const PASSWORD = 'demo-password';

let service: Awaited<ReturnType<typeof givenDemoService>>;
let url: string;
beforeAll(async () => {
  service = await givenDemoService();
  ({ url } = service);
});
afterAll(() => service.close());
afterEach(() => void vi.restoreAllMocks());

/** The command line of somebody with an empty home directory; the answers are typed by a person. */
async function givenPerson() {
  const HOME = await givenDirectory();
  const file = join(HOME, '.config/deckhand/logins.json');
  const command = (words: string, terminal = givenTerminal()) =>
    runCommandLine(words.split(' '), () => ({ HOME }), terminal);
  const onService = (words: string) => command(`${words} --url ${url}`);
  const login = async (email: string, answers: string[] = [PASSWORD], more = '') => {
    const terminal = givenTerminal(answers);
    return { ...(await command(`login --url ${url}/ --email ${email}${more}`, terminal)), shown: terminal.shown };
  };
  return { file, command, onService, login, logins: async () => JSON.parse(await readFile(file, 'utf8')) };
}

async function givenSignedIn(email: string) {
  const person = await givenPerson();
  await person.login(email);
  return person;
}

describe('login', () => {
  it('keeps the token in a file that only its owner can read, and says until when', async () => {
    const { file, login, logins, onService } = await givenPerson();

    const { exitCode, printed, shown } = await login('member@demo.test');

    expect(exitCode).toBe(0);
    expect(printed).toMatch(/^Signed in to http:\S+\d as Member \(member@demo\.test\) until \d{4}-\S+Z\.\n/);
    expect(printed).toContain(`npx deckhand projects list-own --url ${url}`);
    expect(shown).toEqual(['password: ']);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700);
    expect(Object.keys(await logins())).toEqual([url]);
    expect((await onService('account who-am-i')).printed).toMatch(/\nemail +member@demo\.test\n/);
  });

  it.each([
    ['a wrong password', 'viewer@demo.test', ['wrong'], 'The e-mail address or the password is wrong.'],
    ['no code', 'otp@demo.test', [PASSWORD, ''], 'a code is needed'],
  ])('1 for %s, and keeps nothing', async (_, email, answers, message) => {
    const { file, login } = await givenPerson();

    expect(await login(email, answers)).toMatchObject(failure(1, message));
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });

  it('asks for the code of a second factor, again if it is wrong, and not on a remembered device', async () => {
    const { login } = await givenPerson();
    const code = 'code of the authenticator app: ';

    const first = await login('otp@demo.test', [PASSWORD, '12345', codeAt(0)]);
    const second = await login('OTP@demo.test');

    expect(first.complaint).toBeUndefined();
    expect(first.shown).toEqual(['password: ', code, 'The code is wrong, or was used before.\n', code]);
    expect(second).toMatchObject({ exitCode: 0, shown: ['password: '] });
  });

  it('takes a recovery code, and prints JSON without the token', async () => {
    const { login } = await givenPerson();

    const { printed } = await login('otp@demo.test', [PASSWORD, 'demo-recovery-1'], ' --recovery --json');

    expect(JSON.parse(printed!)).toMatchObject({ url, user: { email: 'otp@demo.test' } });
    expect(printed).not.toContain('token');
  });

  it.each([
    ['login --email x', '--url is missing.'],
    ['login --url x', '--email is missing.'],
    ['boards list --url ftp://host', '--url must be an address such as https://deckhand.example.com.'],
    ['boards list --url http://user@host', '--url must be an address such as https://deckhand.example.com.'],
    ['boards list --url https://host --as x@y.test', '--as is for the database'],
  ])('2 for %j', async (words, message) => {
    const { command } = await givenPerson();

    expect(await command(words)).toMatchObject(failure(2, message));
  });
});

describe('a command with --url', () => {
  it('1 without a login, or with one that was ended, with the command to run', async () => {
    const { onService, login } = await givenPerson();
    const loginCommand = `Run: npx deckhand login --url ${url} --email`;

    expect(await onService('boards list')).toMatchObject(
      failure(1, new RegExp(`^You are not signed in to ${url}\\. ${loginCommand} EMAIL .*DECKHAND_KEY`)),
    );
    await login('viewer@demo.test');
    await onService('account sign-out-everywhere');
    const { exitCode, complaint } = await onService('boards list --json');

    expect(exitCode).toBe(1);
    expect(JSON.parse(complaint!).error).toEqual({
      message: `Your login to ${url} has expired or was ended. ${loginCommand} viewer@demo.test`,
      ...{ status: 401, reason: 'credential_invalid' },
    });
  });

  it('1 if the file of logins is broken, or no service answers', async () => {
    const { file, onService, command } = await givenSignedIn('viewer@demo.test');
    const kept = await readFile(file, 'utf8');

    await writeFile(file, '{');
    expect(await onService('boards list')).toMatchObject(failure(1, file));

    await writeFile(file, kept.replace(url, 'http://127.0.0.1:1'));
    expect(await command('cards delete --id 1 --url http://127.0.0.1:1')).toMatchObject(
      failure(1, /^No response.* Start it with npm start\.$/),
    );
  });

  it('keeps the login when the password changes', async () => {
    const { command, onService } = await givenSignedIn('outsider@demo.test');
    const typed = givenTerminal([PASSWORD, 'a better password', 'a better password']);

    const changed = await command(`account change-password --url ${url}`, typed);

    expect(changed).toEqual({ exitCode: 0, printed: 'The password is changed. Other sessions have ended.' });
    expect((await onService('account who-am-i')).exitCode).toBe(0);
  });

  it('has all pages and all replies with --all', async () => {
    const { rpc } = await signIn(url);
    const { card } = await rpc.cards.create.mutate({ title: 'Long thread', group_id: 7 });
    const reply = async (comment: string, parent_comment_id?: number) =>
      (await rpc.comments.create.mutate({ card_id: card.id, comment, parent_comment_id })).comment.id;
    const first = await reply('first');
    for (let at = 1; at <= 101; at++) await reply(`reply ${at}`, first);
    const { onService } = await givenSignedIn('member@demo.test');
    const list = `comments list --card-id ${card.id}`;

    const { threads } = JSON.parse((await onService(`${list} --all --json`)).printed!);

    expect((await onService('cards list --limit 2')).printed).toMatch(/\nMore: --cursor \S+, or --all$/);
    expect((await onService(list)).printed).toMatch(
      /\n {2}More: npx deckhand comments list-replies --id \d+ --cursor /,
    );
    expect(threads).toMatchObject([{ replies_next_cursor: null }]);
    const texts = threads[0].replies.map(({ comment }: { comment: string }) => comment);
    expect(texts).toEqual(Array.from({ length: 101 }, (_, at) => `reply ${at + 1}`));
  });
});

describe('a push', () => {
  it('shows what it would change, runs after a yes, and names its report', async () => {
    const { command, onService } = await givenSignedIn('admin@demo.test');
    const created = async (words: string) => JSON.parse((await onService(`${words} --json`)).printed!);
    const { board } = await created('master-boards create --title Welcome');
    const { group } = await created(`master-groups create --board-id ${board.id} --title Start`);
    const { card } = await created(`master-cards create --group-id ${group.id} --title Look`);

    const { printed: synced } = await onService(`master-boards sync --board-id ${board.id} --yes`);

    expect(synced).toMatch(/^3 of 3 projects changed, 0 without access; 3 cards added, .*\.\nReport: /);
    for (const [noun, { id }] of Object.entries({ board, group, card })) {
      await onService(`master-${noun}s update --id ${id} --title Learn`);
      const terminal = givenTerminal(['y']);

      const { printed } = await command(`master-${noun}s push --${noun}-id ${id} --url ${url}`, terminal);

      expect(terminal.shown[0]).toBe('Preview of 3 projects: 3 updated.\n');
      const [, report = ''] = /^Report: npx deckhand (.*)$/m.exec(printed!) ?? [];
      expect((await onService(report)).printed).toMatch(/\n1 +Harbor Website +updated /);
    }
  });
});

describe('a command with DECKHAND_KEY', () => {
  /** The key of a member, for reading boards. */
  const givenKey = async () =>
    (await (await signIn(url)).rpc.keys.create.mutate({ name: 'x', scopes: ['boards:read'] })).secret;
  const withKey = (DECKHAND_KEY: string, words: string, more: object = { DECKHAND_URL: url }) =>
    runCommandLine(words.split(' '), () => ({ HOME: '/nonexistent', DECKHAND_KEY, ...more }), givenTerminal());

  it('acts as the user of the key, within its scopes, without a login', async () => {
    const key = await givenKey();

    expect(await withKey(key, 'tags list --json')).toMatchObject(failure(1, '"scope_missing"'));
    expect((await withKey(key, 'boards list')).printed).toContain('Launch plan');
    for (const more of [{}, { DECKHAND_URL: '' }, { DECKHAND_URL: `${url}//` }]) {
      expect((await withKey(key, `boards list --url ${url}/`, more)).printed).toContain('Launch plan');
    }
  });

  it('1 for a key that is not valid, which is not printed', async () => {
    const { exitCode, complaint } = await withKey('dkh_mistyped', 'boards list');

    expect(exitCode).toBe(1);
    expect(complaint).toMatch(`${url} did not accept the key in DECKHAND_KEY`);
    expect(complaint).not.toContain('dkh_mistyped');
  });

  it('1 for another service than that of DECKHAND_URL, to which the key is not sent', async () => {
    const other = 'http://127.0.0.1:1';
    const sent = vi.spyOn(globalThis, 'fetch');

    expect(await withKey('dkh_x', `boards list --url ${other}`)).toEqual(
      failure(1, new RegExp(`^You are not signed in to ${other}\\..*DECKHAND_KEY was not sent`)),
    );
    expect(sent).not.toHaveBeenCalled();
  });
});

describe('a service without https', () => {
  /** Nobody answers there. */
  const plain = 'http://192.0.2.1';
  const refused = failure(1, new RegExp(`^${plain} has no https: .*DECKHAND_ALLOW_HTTP=on`));

  it('1 before the password is asked for, and before a key, a login or a token is sent', async () => {
    const { command, file, logins } = await givenPerson();
    const terminal = givenTerminal();
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, JSON.stringify({ [plain]: { email: 'x@y.test', token: 'x' } }));

    expect(await command(`login --url ${plain}/ --email x`, terminal)).toEqual(refused);
    expect(terminal.shown).toEqual([]);
    expect(await command(`boards list --url ${plain}`)).toEqual(refused);
    expect(await runCommandLine(['boards', 'list'], () => ({ DECKHAND_URL: plain, DECKHAND_KEY: 'dkh_x' }))).toEqual(
      refused,
    );
    expect(await command('logout')).toEqual(refused);
    expect(await logins()).toHaveProperty([plain]);
  });

  it('is used if DECKHAND_ALLOW_HTTP is on, and on this machine', async () => {
    const terminal = givenTerminal();
    terminal.ask = () => Promise.reject(Object.assign(new Error('Nobody answers.'), { code: 'ERR_PARSE_ARGS_TEST' }));
    const login = (url: string, settings = {}) =>
      runCommandLine(['login', '--url', url, '--email', 'x'], () => ({ HOME: '/nonexistent', ...settings }), terminal);

    expect(await login(plain, { DECKHAND_ALLOW_HTTP: 'on' })).toMatchObject({ exitCode: 2 });
    expect(await login(plain, { DECKHAND_ALLOW_HTTP: '' })).toEqual(refused);
    for (const own of ['http://localhost:1', 'http://127.0.0.9:1', 'http://[::1]:1', 'https://192.0.2.1']) {
      expect(await login(own), own).toMatchObject({ exitCode: 2 });
    }
  });
});

describe('logout', () => {
  it('ends the session and deletes the token', async () => {
    const { file, command, logins, onService } = await givenSignedIn('member@demo.test');
    const kept = await readFile(file, 'utf8');

    expect(await command('logout')).toEqual({ exitCode: 0, printed: `Signed out of ${url}.` });
    expect(await logins()).toEqual({});
    expect(await command('logout')).toEqual({ exitCode: 0, printed: 'You are not signed in.' });

    await writeFile(file, kept);
    expect((await onService('boards list')).complaint).toContain('has expired or was ended');
    expect((await onService('logout')).exitCode).toBe(0);
  });

  it('1 if the service does not answer, and the token is deleted; 2 if it is unclear which login ends', async () => {
    const { file, command, logins } = await givenSignedIn('member@demo.test');
    const kept = await logins();
    await writeFile(file, JSON.stringify({ ...kept, 'http://127.0.0.1:1': kept[url] }));

    expect(await command('logout')).toMatchObject(failure(2, url));
    expect(await command('logout --url http://127.0.0.1:1')).toMatchObject(
      failure(1, /^The token is deleted, but its session was not ended: No response/),
    );
    expect(await logins()).toEqual(kept);
  });
});
