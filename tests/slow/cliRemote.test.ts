import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { codeAt } from '../harness/codes.ts';
import {
  givenDirectory,
  givenMigratedDirectory,
  removeProcesses,
  runToEnd,
  type StartedService,
  signIn,
  startService,
} from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';
import { givenTerminal } from '../harness/terminal.ts';

/** Commands with `--url`, on a service with the demo data. */

const server = await findTestServer();
const DATABASE_URL =
  server.url &&
  Object.assign(new URL(server.url), { pathname: `/deckhand_remote_${randomBytes(6).toString('hex')}` }).href;
const JWT_SECRET = 'a secret for tests that nobody else uses';

let service: StartedService;

beforeAll(async () => {
  if (!DATABASE_URL) {
    service = await startService({ DATA_DIR: await givenMigratedDirectory() });
    return;
  }
  await createDatabase(DATABASE_URL);
  await runCommandLine(['demo'], () => ({ DATABASE_URL }));
  service = await startService({ DATABASE_URL, JWT_SECRET });
});
afterAll(async () => {
  await removeProcesses();
  if (DATABASE_URL)
    await onServer(server.url!, `drop database ${new URL(DATABASE_URL).pathname.slice(1)} with (force)`);
});

/** The command line of somebody with an empty home directory; the answers are typed by a person. */
async function givenPerson() {
  const HOME = await givenDirectory();
  const file = join(HOME, '.config/deckhand/logins.json');
  const command = (words: string[], terminal = givenTerminal()) => runCommandLine(words, () => ({ HOME }), terminal);
  const onService = (...words: string[]) => command([...words, '--url', service.url]);
  const login = (email: string, answers: string[], ...words: string[]) => {
    const terminal = givenTerminal(answers);
    const answer = command(['login', '--url', `${service.url}/`, '--email', email, ...words], terminal);
    return answer.then(({ exitCode, printed, complaint }) => ({ exitCode, printed, complaint, shown: terminal.shown }));
  };
  return { HOME, file, command, onService, login };
}

const PASSWORD = 'demo-password';

describe('login', () => {
  it('keeps the token in a file that only its owner can read, and says until when', async () => {
    const { file, login, onService } = await givenPerson();

    const { exitCode, printed, shown } = await login('member@demo.test', [PASSWORD]);

    expect(exitCode).toBe(0);
    expect(printed).toMatch(/^Signed in to http:\S+\d as Member \(member@demo\.test\) until \d{4}-\S+Z\.\n/);
    expect(printed).toContain(`npx deckhand projects list-own --url ${service.url}`);
    expect(shown).toEqual(['password: ']);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700);
    expect(Object.keys(JSON.parse(await readFile(file, 'utf8')))).toEqual([service.url]);
    expect((await onService('account', 'who-am-i')).printed).toMatch(/\nemail +member@demo\.test\n/);
  });

  it('1 for a wrong password, and keeps nothing', async () => {
    const { file, login } = await givenPerson();

    const { exitCode, complaint } = await login('viewer@demo.test', ['wrong']);

    expect({ exitCode, complaint }).toEqual({ exitCode: 1, complaint: 'The e-mail address or the password is wrong.' });
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });

  it('asks for the code of a second factor, again if it is wrong, and not on a remembered device', async () => {
    const { login } = await givenPerson();
    const code = 'code of the authenticator app: ';

    const first = await login('otp@demo.test', [PASSWORD, '12345', codeAt(0)]);
    const second = await login('OTP@demo.test', [PASSWORD]);

    expect(first.complaint).toBeUndefined();
    expect(first.shown).toEqual(['password: ', code, 'The code is wrong, or was used before.\n', code]);
    expect(second).toMatchObject({ exitCode: 0, shown: ['password: '] });
  });

  it('1 without the code, with what the service says', async () => {
    const { login } = await givenPerson();

    const { exitCode, complaint } = await login('otp@demo.test', [PASSWORD, '']);

    expect(exitCode).toBe(1);
    expect(complaint).toContain('a code is needed');
  });

  it('takes a recovery code, from standard input too, and prints JSON without the token', async () => {
    const { HOME } = await givenPerson();

    const ended = await runToEnd(
      ['server/cli/deckhand.js', 'login', '--email', 'otp@demo.test', '--recovery', '--json'],
      { HOME, DECKHAND_URL: service.url },
      async ({ stdin }) => void stdin!.end(`${PASSWORD}\ndemo-recovery-1\n`),
    );

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(ended.stdout)).toMatchObject({ url: service.url, user: { email: 'otp@demo.test' } });
    expect(ended.stdout).not.toContain('token');
  });

  it.each([
    [['login', '--email', 'x'], '--url is missing.'],
    [['login', '--url', 'x'], '--email is missing.'],
    [['boards', 'list', '--url', 'ftp://host'], '--url must be an address such as https://deckhand.example.com.'],
    [['boards', 'list', '--url', 'http://user@host'], '--url must be an address such as https://deckhand.example.com.'],
    [['boards', 'list', '--url', 'https://host', '--as', 'x@y.test'], '--as is for the database'],
  ])('2 for %j', async (words, message) => {
    const { command } = await givenPerson();

    const { exitCode, complaint } = await command(words);

    expect(exitCode).toBe(2);
    expect(complaint).toContain(message);
  });
});

describe('a command with --url', () => {
  it('1 without a login, with the command to run', async () => {
    const { onService } = await givenPerson();

    expect(await onService('boards', 'list')).toEqual({
      exitCode: 1,
      complaint: `You are not signed in to ${service.url}. Run: npx deckhand login --url ${service.url} --email EMAIL (programs: set DECKHAND_KEY to an API key)`,
    });
  });

  it('1 with a login that was ended, with the command to run', async () => {
    const { login, onService } = await givenPerson();
    await login('viewer@demo.test', [PASSWORD]);
    await onService('account', 'sign-out-everywhere');

    const { exitCode, complaint } = await onService('boards', 'list', '--json');

    expect(exitCode).toBe(1);
    expect(JSON.parse(String(complaint)).error).toEqual({
      message: `Your login to ${service.url} has expired or was ended. Run: npx deckhand login --url ${service.url} --email viewer@demo.test`,
      status: 401,
      reason: 'not_signed_in',
    });
  });

  it('1 if the file of logins is broken, or no service answers', async () => {
    const { file, login, onService, command } = await givenPerson();
    await login('viewer@demo.test', [PASSWORD]);
    const kept = await readFile(file, 'utf8');

    await writeFile(file, '{');
    expect(await onService('boards', 'list')).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(file) });

    await writeFile(file, kept.replace(service.url, 'http://127.0.0.1:1'));
    const { exitCode, complaint } = await command(['cards', 'delete', '--id', '1', '--url', 'http://127.0.0.1:1']);
    expect(exitCode).toBe(1);
    expect(complaint).toMatch(/^No response.* Start it with npm start\.$/);
  });

  it.skipIf(!DATABASE_URL)('prints what it prints on the database', async () => {
    const { login, onService } = await givenPerson();
    await login('owner@demo.test', [PASSWORD]);
    const onDatabase = (...words: string[]) =>
      runCommandLine([...words, '--as', 'OWNER@demo.test'], () => ({ DATABASE_URL }), givenTerminal());

    for (const words of [
      ['boards', 'get', '--id', '2'],
      ['boards', 'list'],
      ['boards', 'list', '--project', '2'],
      ['boards', 'list', '--project', '3'],
      ['cards', 'list', '--limit', '2'],
      ['cards', 'list', '--limit', '2', '--all', '--priority', 'normal'],
      ['comments', 'list', '--card-id', '16'],
      ['projects', 'list-own'],
      ['members', 'list'],
      ['boards', 'get', '--id', '999'],
      ['boards', 'get', '--id', 'x'],
      ['users', 'list'],
      ['groups', 'reorder', '--groups', '7:1,7:2'],
    ]) {
      for (const how of [[], ['--json']]) {
        expect(await onService(...words, ...how)).toEqual(await onDatabase(...words, ...how));
      }
    }
    expect((await onService('cards', 'list', '--limit', '2')).printed).toMatch(/\nMore: --cursor \S+, or --all$/);
  });

  it('keeps the login when the password changes', async () => {
    const { login, command, onService } = await givenPerson();
    await login('outsider@demo.test', [PASSWORD]);

    const words = ['account', 'change-password', '--url', service.url];
    const changed = await command(words, givenTerminal([PASSWORD, 'a better password', 'a better password']));

    expect(changed).toEqual({ exitCode: 0, printed: 'The password is changed. Other sessions have ended.' });
    expect((await onService('account', 'who-am-i')).exitCode).toBe(0);
  });
});

describe('a command with DECKHAND_KEY', () => {
  /** The key of a member, for these scopes. */
  async function givenKey(...scopes: string[]) {
    const { body } = await (await signIn(service.url)).post('/services/platforms/v1/keys/create', {
      name: 'x',
      scopes,
    });
    return body.data.secret as string;
  }
  const withKey = (DECKHAND_KEY: string, ...words: string[]) =>
    runCommandLine(words, () => ({ HOME: '/nonexistent', DECKHAND_URL: service.url, DECKHAND_KEY }), givenTerminal());

  it('acts as the user of the key, within its scopes, without a login', async () => {
    const key = await givenKey('boards:read');

    expect((await withKey(key, 'boards', 'list')).printed).toContain('Launch plan');
    expect(await withKey(key, 'tags', 'list', '--json')).toMatchObject({
      exitCode: 1,
      complaint: expect.stringContaining('"scope_missing"'),
    });
  });

  it('1 for a key that is not valid, which is not printed', async () => {
    expect(await withKey('dkh_mistyped', 'boards', 'list')).toEqual({
      exitCode: 1,
      complaint: `${service.url} did not accept the key in DECKHAND_KEY: it is mistyped, revoked or expired.`,
    });
  });

  it('1 for another service than that of DECKHAND_URL, to which the key is not sent', async () => {
    const sent: unknown[] = [];
    const other = createServer((request, response) => {
      sent.push(request.headers.authorization);
      response.writeHead(500).end();
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;

    expect(await withKey('dkh_x', 'boards', 'list', '--url', url)).toEqual({
      exitCode: 1,
      complaint: `You are not signed in to ${url}. Run: npx deckhand login --url ${url} --email EMAIL (DECKHAND_KEY was not sent: it is for the service of DECKHAND_URL)`,
    });
    expect(sent).toEqual([]);
    other.close();
  });

  it('goes to the service of --url if that is DECKHAND_URL, or if there is none', async () => {
    const key = await givenKey('boards:read');
    const list = (settings: object) =>
      runCommandLine(
        ['boards', 'list', '--url', `${service.url}/`],
        () => ({ DECKHAND_KEY: key, ...settings }),
        givenTerminal(),
      );

    for (const settings of [{}, { DECKHAND_URL: '' }, { DECKHAND_URL: `${service.url}//` }]) {
      expect((await list(settings)).printed).toContain('Launch plan');
    }
  });

  it('has no option for the key, since other users can see command lines', async () => {
    expect((await withKey('', 'boards', 'list', '--key', 'dkh_x')).exitCode).toBe(2);
  });
});

describe('a service without https', () => {
  /** Nobody answers there. */
  const url = 'http://192.0.2.1';
  const refused = {
    exitCode: 1,
    complaint: `${url} has no https: everybody on the way could read your password or key, so nothing was sent. Use its https address, or set DECKHAND_ALLOW_HTTP=on if you trust the whole network.`,
  };

  it('1 before the password is asked for, and before a key, a login or a token is sent', async () => {
    const { command, HOME, file } = await givenPerson();
    const terminal = givenTerminal();
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, JSON.stringify({ [url]: { email: 'x@y.test', token: 'x' } }));

    expect(await command(['login', '--url', `${url}/`, '--email', 'x'], terminal)).toEqual(refused);
    expect(terminal.shown).toEqual([]);
    expect(await command(['boards', 'list', '--url', url])).toEqual(refused);
    expect(
      await runCommandLine(['boards', 'list'], () => ({ HOME, DECKHAND_URL: url, DECKHAND_KEY: 'dkh_x' })),
    ).toEqual(refused);
    expect(await command(['logout'])).toEqual(refused);
    expect(JSON.parse(await readFile(file, 'utf8'))).toHaveProperty([url]);
  });

  it('is used if DECKHAND_ALLOW_HTTP is on, and on this machine', async () => {
    const terminal = givenTerminal();
    terminal.ask = () => Promise.reject(Object.assign(new Error('Nobody answers.'), { code: 'ERR_PARSE_ARGS_TEST' }));
    const login = (url: string, settings = {}) =>
      runCommandLine(['login', '--url', url, '--email', 'x'], () => ({ HOME: '/nonexistent', ...settings }), terminal);

    expect(await login(url, { DECKHAND_ALLOW_HTTP: 'on' })).toMatchObject({ exitCode: 2 });
    expect(await login(url, { DECKHAND_ALLOW_HTTP: '' })).toEqual(refused);
    for (const own of ['http://localhost:1', 'http://127.0.0.9:1', 'http://[::1]:1', 'https://192.0.2.1']) {
      expect(await login(own), own).toMatchObject({ exitCode: 2 });
    }
  });
});

describe('texts of a service, in a pipe', () => {
  /** Commands on a service that answers every call with this. */
  async function givenAnswer(body: object, status = 200) {
    const other = createServer((_request, response) => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const DECKHAND_URL = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    return (...words: string[]) =>
      runToEnd(['server/cli/deckhand.js', ...words], { DECKHAND_URL, DECKHAND_KEY: 'dkh_x' });
  }
  const resultOf = (json: object) => ({ result: { data: { json } } });
  const HOSTILE = 'a\x1b]0;b\x07\x9b31m\u202ec\u2028d\re';
  const SHOWN = String.raw`a\u001b]0;b\u0007\u009b31m\u202ec\u2028d\u000de`;

  it('have no characters that a terminal acts on, in tables and trees', async () => {
    const board = { id: 1, title: HOSTILE, groups: [{ id: 2, title: HOSTILE, cards: [{ id: 3, title: HOSTILE }] }] };
    const list = await givenAnswer(resultOf({ tags: [{ id: 1, [HOSTILE]: HOSTILE }] }));
    const tree = await givenAnswer(resultOf({ board }));

    expect((await list('tags', 'list')).stdout).toBe(`id  ${SHOWN}\n1   ${SHOWN}\n`);
    expect((await tree('boards', 'get', '--id', '1')).stdout).toBe(
      `1  ${SHOWN}\n\n  2  ${SHOWN}\n    id  title\n    3   ${SHOWN}\n`,
    );
  });

  it('have none in messages', async () => {
    const error = { code: -32603, message: HOSTILE, data: { code: 'FORBIDDEN', httpStatus: 403 } };
    const command = await givenAnswer({ error: { json: error } }, 403);

    expect(await command('boards', 'list')).toMatchObject({ code: 1, stdout: '', stderr: `${SHOWN}\n` });
    const { stderr } = await command('boards', 'list', '--json');
    expect(stderr).not.toMatch(/[^\n\x20-\x7e]/);
    expect(JSON.parse(stderr).error.message).toBe(HOSTILE);
  });

  it('are exact in JSON, and escaped there', async () => {
    const command = await givenAnswer(resultOf({ tags: [{ id: 1, name: HOSTILE }] }));

    const { stdout } = await command('tags', 'list', '--json');

    expect(stdout).not.toMatch(/[^\n\x20-\x7e]/);
    expect(JSON.parse(stdout)).toEqual({ tags: [{ id: 1, name: HOSTILE }] });
  });
});

describe('comments list --all', () => {
  it('has all replies', async () => {
    const member = await signIn(service.url);
    const post = (path: string, body: object) => member.post(`/services/operations/v1/operations/${path}`, body);
    const { body } = await post('cards/create', { title: 'Long thread', group_id: 7 });
    const card_id = body.data.card.id;
    const comment = await post('comments/create', { card_id, comment: 'first' });
    for (let reply = 1; reply <= 101; reply++) {
      await post('comments/create', {
        card_id,
        comment: `reply ${reply}`,
        parent_comment_id: comment.body.data.comment.id,
      });
    }
    const { login, onService } = await givenPerson();
    await login('member@demo.test', [PASSWORD]);
    const list = ['comments', 'list', '--card-id', String(card_id)];

    const all = JSON.parse((await onService(...list, '--all', '--json')).printed!);

    expect((await onService(...list)).printed).toMatch(
      /\n {2}More: npx deckhand comments list-replies --id \d+ --cursor /,
    );
    expect(all.threads).toMatchObject([{ replies_next_cursor: null }]);
    const texts = all.threads[0].replies.map(({ comment }: { comment: string }) => comment);
    expect(texts).toEqual(Array.from({ length: 101 }, (_, at) => `reply ${at + 1}`));
  });
});

describe('logout', () => {
  it('ends the session and deletes the token', async () => {
    const { file, login, command, onService } = await givenPerson();
    await login('member@demo.test', [PASSWORD]);
    const kept = await readFile(file, 'utf8');

    expect(await command(['logout'])).toEqual({ exitCode: 0, printed: `Signed out of ${service.url}.` });
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({});
    expect(await command(['logout'])).toEqual({ exitCode: 0, printed: 'You are not signed in.' });

    await writeFile(file, kept);
    expect((await onService('boards', 'list')).complaint).toContain('has expired or was ended');
    expect((await onService('logout')).exitCode).toBe(0);
  });

  it('1 if the service does not answer, and the token is deleted; 2 if it is unclear which login ends', async () => {
    const { file, login, command } = await givenPerson();
    await login('member@demo.test', [PASSWORD]);
    const logins = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...logins, 'http://127.0.0.1:1': logins[service.url] }));

    expect(await command(['logout'])).toMatchObject({ exitCode: 2, complaint: expect.stringContaining(service.url) });
    expect(await command(['logout', '--url', 'http://127.0.0.1:1'])).toMatchObject({
      exitCode: 1,
      complaint: expect.stringMatching(/^The token is deleted, but its session was not ended: No response/),
    });
    expect(Object.keys(JSON.parse(await readFile(file, 'utf8')))).toEqual([service.url]);
  });
});
