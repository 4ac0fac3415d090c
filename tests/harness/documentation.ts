import { spawn } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { procedures } from '../../server/api/procedures.ts';
import { blocksOf as blocksIn, missingLines, scriptOf, stepsOf } from './guide.ts';
import { givenTarball } from './packedClient.ts';
import {
  givenDemoDirectory,
  givenMigratedDirectory,
  removeProcesses,
  type StartedService,
  startProgram,
} from './process.ts';
import { isNight } from './sample.ts';
import { findTestServer, givenServerDatabase, type ServerDatabase } from './server.ts';
import { startNode } from './usedService.ts';

/** Runs every command of the documentation, in order, in a copy of the project. */

export const ROOT = join(import.meta.dirname, '../..');
export const pages = [...readdirSync(ROOT), ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter(
  (name) => name.endsWith('.md'),
);
export const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8');

/** Commands that can't run inside a test, and where they are covered instead. */
const RUN_ELSEWHERE: Record<string, string> = {
  'npm ci && npm start': 'the service below is started as `npm start` does',
  'npm ci && npm test': 'this is the test',
  'WEBHOOK_ALLOWED_HOSTS=127.0.0.1:8080 npm start': 'the service below has this setting',
  "SMTP_URL='smtps://deckhand:the-password@mail.example.com' MAIL_FROM='Deckhand <deckhand@example.com>' npm start":
    'the tests of mails start a service with these settings',
  'WEBHOOK_ALLOWED_HOSTS=crm.internal:8080,reports.internal': 'a setting of the service, not a command',
  [`npm install ./deckhand-client-${packageJson.version}.tgz`]: 'the test of the package installs it',
  [`npm install --save-dev ./deckhand-client-${packageJson.version}.tgz ./deckhand-${packageJson.version}.tgz`]:
    'the test of the test kit unpacks them',
  'claude mcp add --transport http deckhand http://127.0.0.1:3000/mcp --header "Authorization: Bearer $DECKHAND_KEY"':
    'the test of the official client connects in the same way',
  'npx deckhand database copy --resume-webhooks --without-erasures': 'the test of the copy runs it',
  'npx deckhand database lock-demo-users': 'the test of the first users runs it',
  'npx deckhand database finish-upgrade': 'the test of levels runs it',
  'pg_dump --format=custom --file=deckhand.dump': 'the test of pg_dump runs it',
  'createdb deckhand_restored\npg_restore --dbname=deckhand_restored --no-owner --no-privileges --single-transaction deckhand.dump':
    'the test of pg_dump runs it',
  'npx deckhand contract --url $DECKHAND_URL': 'the test of the packed service runs it',
  'npx deckhand sandbox': 'the next command of the page starts it in the background',
  'python3 test_cards.py': 'the test of the sandbox runs it where Python is installed',
  'npx openapi-typescript@7 http://127.0.0.1:3000/openapi.json -o deckhand.ts': 'the test of third parties runs it',
};

export const blocksOf = (page: string) => blocksIn(textOf(page));
/** Such a page changes its copy of the project. */
export const hasChanges = (page: string) => blocksOf(page).some(({ language }) => language === 'diff');
const commandsOf = (page: string) => stepsOf(blocksOf(page), isRunHere);
/** Containers can't run inside a test; tests/boot/docker.slow.test.ts runs what is in them as processes. */
const isRunHere = (command: string) => !(command in RUN_ELSEWHERE) && !command.startsWith('docker ');

const runPages = pages.filter((page) => commandsOf(page).length > 0);

const PARTS = [
  'client',
  'server',
  'shared',
  'tests',
  'docs',
  'README.md',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'vitest.config.ts',
];

const server = await findTestServer();
let service: Awaited<ReturnType<typeof startNode>>;
let commands: StartedService | undefined;
let place: string;
let copy: string;
/** Of the test runs of a page, which share their prepared database. */
/** Whether a page has changed the copy. */
let isChanged = false;
let database: ServerDatabase | undefined;
let provisioning: Record<string, string>;
/** Pages about the embedded database, and a directory for them. */
const EMBEDDED = ['docs/data.md'];
let embedded: Record<string, string | undefined>;

/**
 * Applies the diffs of a page to the copy. A hunk names by a few lines where it goes, not by their numbers; one without such
 * lines goes to the end. So other changes of these files don't break the page.
 */
async function applyChanges(page: string): Promise<void> {
  const diffs = blocksOf(page).filter(({ language }) => language === 'diff');
  for (const [, file, change] of diffs
    .map(({ code }) => code)
    .join('')
    .matchAll(FILE_CHANGE)) {
    const path = join(copy, file!);
    const hunks = change!.split(/^@@.*\n/m).filter(Boolean);
    let text = exists(path) ? readFileSync(path, 'utf8') : '';
    for (const lines of hunks.map((hunk) => hunk.match(/^.*\n/gm)!)) {
      const textOf = (mark: string) =>
        lines
          .filter((line) => [' ', mark].includes(line[0]!))
          .map((line) => line.slice(1))
          .join('');
      const [before, after] = [textOf('-'), textOf('+')];
      expect(before === '' || text.split(before).length === 2, `${file} has these lines once:\n${before}`).toBe(true);
      text = before === '' ? text + after : text.replace(before, () => after);
    }
    await writeFile(path, text);
    isChanged = true;
  }
}
const FILE_CHANGE = /^--- .*\n\+\+\+ b\/(.*)\n((?:(?!--- ).*\n)*)/gm;

/** In one shell per page, since later commands use variables of earlier ones. */
async function runInShell(
  script: string,
  { typed = '', settings = {} }: { typed?: string; settings?: Record<string, string | undefined> } = {},
): Promise<{ code: number | null; printed: string }> {
  const child = spawn(
    'bash',
    ['-e', '-o', 'pipefail', '-c', ENDING + (await withoutNpx()) + onService(await withPacked(script))],
    {
      cwd: copy,
      env: {
        ...process.env,
        ...provisioning,
        ...settings,
        XDG_CONFIG_HOME: join(copy, 'config'),
        // The copy has a migration that the databases of this run lack: its test runs make their own.
        TEST_WORKPLACE: '',
        npm_config_update_notifier: 'false',
        npm_config_cache: join(copy, 'npm'),
        // A packed client has no dependencies: installing it needs no network.
        npm_config_offline: 'true',
        npm_config_audit: 'false',
      },
    },
  );
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text));
  child.stdin.end(typed);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, printed };
}

/**
 * npx takes a second to find the command, which takes another one to load; there are dozens. `cliLauncher.test.ts` runs both.
 * A page with changes runs the command of its copy.
 */
async function withoutNpx(): Promise<string> {
  return `npx() {
  if [ "$1" = deckhand ]; then ${isChanged ? 'node_modules/.bin/node server/cli/deckhand.js' : await ofServer()} "\${@:2}"
  else command npx "$@"; fi
}
`;
}

async function ofServer(): Promise<string> {
  commands ??= await startProgram(['tests/harness/commandServer.ts'], {});
  return `${process.execPath} ${join(import.meta.dirname, 'command.js')} ${new URL(commands.url).port}`;
}

/** Packing takes several seconds: a page gets what the suites of the packages pack with the same command. */
async function withPacked(script: string): Promise<string> {
  let packed = script;
  for (const kind of ['client', 'server'] as const) {
    const command = `npm run pack:${kind}`;
    if (script.includes(command))
      packed = packed.replace(command, `{ mkdir -p dist && cp ${await givenTarball(kind)} dist; }`);
  }
  return packed;
}

/** Dozens of commands, each with its own process, and for one page whole suites: a busy machine takes minutes. */
const LONGEST_PAGE_MILLISECONDS = 900_000;

/** The service of the test listens on another port. */
const onService = (text: string) =>
  text
    .replaceAll('http://127.0.0.1:3000', service.url)
    .replaceAll('127.0.0.1:3100', `127.0.0.1:${SANDBOX_PORT}`)
    .replaceAll('deckhand.js sandbox >', `deckhand.js sandbox --port ${SANDBOX_PORT} >`);
/** Below the ports that other connections get; a developer's own sandbox may have 3100. */
const SANDBOX_PORT = 10_000 + (process.pid % 20_000);
/** A page whose command fails must not leave its sandbox behind. */
const ENDING = "trap 'kill $SANDBOX 2>/dev/null || :' EXIT\n";

/** Runs the commands of these pages in a copy of the project of their own. */
export function testCommandsOf(chosen: (page: string) => boolean): void {
  beforeAll(async () => {
    // Another suite of this worker may have set them.
    [isChanged, commands] = [false, undefined];
    place = await mkdtemp(join(tmpdir(), 'deckhand-documentation-'));
    copy = join(place, 'deckhand');
    // Faster than the asynchronous one.
    for (const part of PARTS) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    embedded = { DATA_DIR: await givenMigratedDirectory(), DATABASE_URL: undefined };
    database = server.url ? await givenServerDatabase(server.url, 'documentation') : undefined;
    provisioning = database ? { DATABASE_URL: database.url } : { DATA_DIR: join(copy, 'provisioning') };
  });
  afterAll(async () => {
    await removeProcesses();
    await rm(place, { recursive: true });
    await database?.remove();
  });

  // Each page begins with new demo data.
  beforeEach(async () => {
    service = await startNode({
      DATA_DIR: await givenDemoDirectory(),
      WEBHOOK_ALLOWED_HOSTS: '127.0.0.1:8080',
      // The check of a service takes about a minute at the default limit.
      RATE_LIMIT_PER_MINUTE: '10000',
    });
  });
  afterEach(() => service.stop());

  it.each(runPages.filter(chosen))(
    '%s: they work, and print what it shows',
    async (page) => {
      await applyChanges(page);
      for (const earlier of DONE_BEFORE[page] ?? []) {
        await runInShell(scriptOf(commandsOf(earlier)));
        await MORE_CHECKS[earlier]?.();
      }
      const commands = commandsOf(page);
      const { code, printed } = await runInShell(scriptOf(commands), {
        typed: 'a good password\n',
        settings: EMBEDDED.includes(page) ? embedded : {},
      });

      expect(code, printed).toBe(0);
      expect(missingLines(commands, printed.replaceAll(service.url, 'http://127.0.0.1:3000')), printed).toEqual([]);
      expect(printed).not.toContain('"error":true');
      await MORE_CHECKS[page]?.();
    },
    LONGEST_PAGE_MILLISECONDS,
  );
}

/** The pages whose steps a reader has taken on the same service. */
const DONE_BEFORE: Record<string, string[]> = { 'docs/tutorial.md': ['README.md'] };

/** What else is checked on the service of a page. */
const MORE_CHECKS: Record<string, () => Promise<void>> = {
  'docs/errors.md': async () => {
    const [step] = commandsOf('docs/errors.md');
    const shown = blocksOf('docs/errors.md').find(({ language }) => language === 'json');

    const { printed } = await runInShell(step?.script ?? '');

    expect(JSON.parse(printed)).toEqual(JSON.parse(shown?.code ?? ''));
  },
  'docs/rollouts.md': async () => {
    const read = async (command: string) =>
      JSON.parse((await runInShell(`npx deckhand ${command} --json --url http://127.0.0.1:3000`)).printed);
    const { rows } = await read('releases get --id 1');
    const before = rows.find(({ noun, master_id }: Record<string, unknown>) => noun === 'card' && master_id === 1);

    const { card } = await read('cards get --id 6');

    expect(card).toMatchObject({ project_id: 1, master_card_id: 1, title: 'Look around', ...before.content });
  },
  'docs/adding.md': async () => {
    if (!isNight) return;
    const suites = OVER_ALL_PROCEDURES.map((name) => `tests/${name}.test.ts`).join(' ');

    const { code, printed } = await runInShell(`npx vitest run ${suites} -t '${WITHOUT_UNCHANGED}'`);

    expect(code, printed.slice(-20_000)).toBe(0);
  },
  'README.md': async () => {
    const program = blocksOf('README.md').find(({ language }) => language === 'ts');
    await writeFile(join(copy, 'first.ts'), onService(program?.code ?? ''));

    const { code, printed } = await runInShell('npx node first.ts');

    expect(code, printed).toBe(0);
    expect(printed).toContain('Launch plan');
  },
};

/** The page adds an operation to tags, a field to cards, and milestones. */
const CHANGED = ['tags', 'cards', 'milestones'];
const unchanged = new Set(
  procedures.map(({ name }) => name.split('.', 1)[0]!).filter((noun) => !CHANGED.includes(noun)),
);
/** Matches every test but those of a procedure that the page does not change: `npm test` runs them. */
const WITHOUT_UNCHANGED = `^(?!.*\\b(${[...unchanged].join('|')})\\.[a-z])`;

/** What a new operation or table can break: the suites that walk all procedures or tables. */
const OVER_ALL_PROCEDURES = [
  ...['walk', 'procedures', 'metadata', 'procedureReasons', 'inputLimits', 'tenancy'].map(
    (name) => `operation/${name}`,
  ),
  ...['contract/document', 'contract/breaking', 'database/schema', 'database/tables', 'board/rowVersions'],
];

export function exists(path: string): boolean {
  try {
    return readFileSync(path).length >= 0;
  } catch {
    return false;
  }
}
