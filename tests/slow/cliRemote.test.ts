import { randomBytes } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { codeAt } from '../harness/codes.ts';
import { givenDirectory, givenMigratedDirectory, signIn } from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';
import { givenTerminal } from '../harness/terminal.ts';
import { startNode } from '../harness/usedService.ts';

/** Commands with `--url`, on a service with the demo data. */

const server = await findTestServer();
const name = `deckhand_remote_${randomBytes(6).toString('hex')}`;
const DATABASE_URL = server.url && Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
const PASSWORD = 'demo-password';

let node: Awaited<ReturnType<typeof startNode>>;
let url: string;

beforeAll(async () => {
  if (DATABASE_URL) {
    await createDatabase(DATABASE_URL);
    await runCommandLine(['demo'], () => ({ DATABASE_URL }));
  }
  node = await startNode(
    DATABASE_URL
      ? { DATABASE_URL, JWT_SECRET: 'a secret for tests that nobody else uses' }
      : { DATA_DIR: await givenMigratedDirectory() },
  );
  ({ url } = node);
});
afterAll(async () => {
  await node.stop();
  if (DATABASE_URL) await onServer(server.url!, `drop database ${name} with (force)`);
});

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

    expect(await login(email, answers)).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(message) });
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

    expect(await command(words)).toMatchObject({ exitCode: 2, complaint: expect.stringContaining(message) });
  });
});

describe('a command with --url', () => {
  it('1 without a login, or with one that was ended, with the command to run', async () => {
    const { onService, login } = await givenPerson();
    const loginCommand = `Run: npx deckhand login --url ${url} --email`;

    expect(await onService('boards list')).toMatchObject({
      exitCode: 1,
      complaint: expect.stringMatching(`^You are not signed in to ${url}\\. ${loginCommand} EMAIL .*DECKHAND_KEY`),
    });
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
    expect(await onService('boards list')).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(file) });

    await writeFile(file, kept.replace(url, 'http://127.0.0.1:1'));
    expect(await command('cards delete --id 1 --url http://127.0.0.1:1')).toMatchObject({
      exitCode: 1,
      complaint: expect.stringMatching(/^No response.* Start it with npm start\.$/),
    });
  });

  it.skipIf(!DATABASE_URL)('prints what it prints on the database', async () => {
    const { onService } = await givenSignedIn('owner@demo.test');
    const onDatabase = (words: string) =>
      runCommandLine([...words.split(' '), '--as', 'OWNER@demo.test'], () => ({ DATABASE_URL }), givenTerminal());

    for (const words of [
      ...['boards get --id 2', 'boards list', 'boards list --project 2', 'boards list --project 3'],
      ...['cards list --limit 2', 'cards list --limit 2 --all --priority normal', 'comments list --card-id 16'],
      ...['projects list-own', 'members list', 'boards get --id 999', 'boards get --id x', 'users list'],
      'groups reorder --groups 7:1,7:2',
    ]) {
      for (const how of ['', ' --json']) expect(await onService(words + how)).toEqual(await onDatabase(words + how));
    }
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

describe('a command with DECKHAND_KEY', () => {
  /** The key of a member, for reading boards. */
  const givenKey = async () =>
    (await (await signIn(url)).rpc.keys.create.mutate({ name: 'x', scopes: ['boards:read'] })).secret;
  const withKey = (DECKHAND_KEY: string, words: string, more: object = { DECKHAND_URL: url }) =>
    runCommandLine(words.split(' '), () => ({ HOME: '/nonexistent', DECKHAND_KEY, ...more }), givenTerminal());

  it('acts as the user of the key, within its scopes, without a login', async () => {
    const key = await givenKey();

    expect(await withKey(key, 'tags list --json')).toMatchObject({
      exitCode: 1,
      complaint: expect.stringContaining('"scope_missing"'),
    });
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

    expect(await withKey('dkh_x', `boards list --url ${other}`)).toEqual({
      exitCode: 1,
      complaint: expect.stringMatching(`^You are not signed in to ${other}\\..*DECKHAND_KEY was not sent`),
    });
    expect(sent).not.toHaveBeenCalled();
  });
});

describe('a service without https', () => {
  /** Nobody answers there. */
  const plain = 'http://192.0.2.1';
  const refused = { exitCode: 1, complaint: expect.stringMatching(`^${plain} has no https: .*DECKHAND_ALLOW_HTTP=on`) };

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

describe('texts of a service', () => {
  /** Runs a command on a service that answers with this. */
  async function answerOf(words: string, body: object, status = 200) {
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(Response.json(body, { status }));
    const settings = { DECKHAND_URL: 'https://deckhand.test', DECKHAND_KEY: 'dkh_x' };
    return runCommandLine(words.split(' '), () => settings, givenTerminal());
  }
  const resultOf = (json: object) => ({ result: { data: { json } } });
  const HOSTILE = 'a\x1b]0;b\x07\x9b31m\u202ec\u2028d\re';
  const SHOWN = String.raw`a\u001b]0;b\u0007\u009b31m\u202ec\u2028d\u000de`;
  const NOT_PLAIN = /[^\n\x20-\x7e]/;

  it('have no characters that a terminal acts on, in tables, trees and messages', async () => {
    const board = { id: 1, title: HOSTILE, groups: [{ id: 2, title: HOSTILE, cards: [{ id: 3, title: HOSTILE }] }] };
    const error = { code: -32603, message: HOSTILE, data: { code: 'FORBIDDEN', httpStatus: 403 } };

    const table = await answerOf('tags list', resultOf({ tags: [{ id: 1, [HOSTILE]: HOSTILE }] }));
    const tree = await answerOf('boards get --id 1', resultOf({ board }));
    const refused = await answerOf('boards list', { error: { json: error } }, 403);

    expect(table.printed).toBe(`id  ${SHOWN}\n1   ${SHOWN}`);
    expect(tree.printed).toBe(`1  ${SHOWN}\n\n  2  ${SHOWN}\n    id  title\n    3   ${SHOWN}`);
    expect(refused).toEqual({ exitCode: 1, complaint: SHOWN });
  });

  it('are exact in JSON, and escaped there', async () => {
    const error = { code: -32603, message: HOSTILE, data: { code: 'FORBIDDEN', httpStatus: 403 } };

    const { printed } = await answerOf('tags list --json', resultOf({ tags: [{ id: 1, name: HOSTILE }] }));
    const { complaint } = await answerOf('boards list --json', { error: { json: error } }, 403);

    expect(`${printed}${complaint}`).not.toMatch(NOT_PLAIN);
    expect(JSON.parse(printed!)).toEqual({ tags: [{ id: 1, name: HOSTILE }] });
    expect(JSON.parse(complaint!).error.message).toBe(HOSTILE);
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

    expect(await command('logout')).toMatchObject({ exitCode: 2, complaint: expect.stringContaining(url) });
    expect(await command('logout --url http://127.0.0.1:1')).toMatchObject({
      exitCode: 1,
      complaint: expect.stringMatching(/^The token is deleted, but its session was not ended: No response/),
    });
    expect(await logins()).toEqual(kept);
  });
});
