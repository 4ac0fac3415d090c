import { execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, symlink } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { readSettings, SETTINGS } from '../../server/runtime/env.ts';
import { filesOfPage, readPage } from '../harness/builtPage.ts';
import { givenDirectory, givenMigratedDirectory, removeProcesses, startProgram } from '../harness/process.ts';

/** Docker can't run here: what the image has, and the settings of compose.yaml, are run as processes. */

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const dockerfile = read('Dockerfile');
/** Programs of the first stage; what they make is copied to the image. */
const [, ...made] = /^RUN node (server\/package\/pageBuild\.ts) &&/m.exec(dockerfile)!;
const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources]) => sources!.split(' '));
const healthCommand: string[] = JSON.parse(/^HEALTHCHECK .*\\\n\s*CMD (\[.*\])$/m.exec(dockerfile)![1]!);

type Service = {
  image: string;
  environment?: Record<string, string>;
  volumes?: string[];
  healthcheck?: object;
  restart: string;
  read_only?: boolean;
  user?: string;
  networks: string[];
  depends_on?: Record<string, { condition: string }>;
  stop_grace_period?: string;
  entrypoint?: string[];
  profiles?: string[];
  ports?: string[];
};
type Compose = { services: Record<string, Service>; volumes: object; networks: Record<string, { internal?: boolean }> };
const compose: Compose = parse(read('compose.yaml'), { merge: true });
const { node1, node2, cli, sandbox, proxy, postgres, redis } = compose.services as Record<string, Service>;

/** The values that docs/docker.md generates. */
const GENERATED = {
  DOMAIN: 'api.example.com',
  POSTGRES_PASSWORD: 'a'.repeat(48),
  JWT_SECRET: 'b'.repeat(64),
  METRICS_TOKEN: 'c'.repeat(48),
};

/** As Compose does it: `${NAME:?message}` and `${NAME:-default}`. */
const interpolated = (environment: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      value.replaceAll(/\$\{(\w+):([?-])([^}]*)\}/g, (_, variable: keyof typeof GENERATED, kind, text) => {
        const given = GENERATED[variable];
        if (given === undefined && kind === '?') throw new Error(`${variable} ${text}`);
        return given ?? text;
      }),
    ]),
  );

afterAll(removeProcesses);

describe('compose.yaml', () => {
  it('names settings that exist, with values that the service accepts', () => {
    const environment = interpolated(node1!.environment!);

    expect(Object.keys(environment).filter((name) => !SETTINGS.includes(name))).toEqual([]);
    expect(readSettings(environment)).toMatchObject({
      PUBLIC_URL: 'https://api.example.com',
      TRUST_PROXY: 1,
      ALLOWED_ORIGINS: [],
    });
  });

  it('has two equal nodes, and a command line with their settings', () => {
    expect(node2).toEqual(node1);
    expect(cli).toMatchObject({
      environment: node1!.environment,
      entrypoint: ['node', 'server/cli/main.ts'],
      restart: 'no',
    });
    expect(existsSync(join(ROOT, cli!.entrypoint![1]!))).toBe(true);
  });

  it('has a sandbox that starts only when asked for, and that only this machine reaches', async () => {
    const { healthcheck, entrypoint, environment } = sandbox as Service & { healthcheck: { test: string[] } };
    expect(sandbox).toMatchObject({ profiles: ['sandbox'], ports: ['127.0.0.1:3100:3100'], networks: ['front'] });
    expect(environment).toBeUndefined();

    const [, script, ...words] = entrypoint!;
    expect(words.splice(-2)).toEqual(['--host', '0.0.0.0']);
    const { url } = await startProgram([script!, ...words, '--port', '0'], {});

    const [, ...command] = healthcheck.test;
    const check = (address: string) =>
      run(
        command.map((word) => word.replace('http://127.0.0.1:3100', address)),
        {},
      );
    expect(await check(url)).toMatchObject({ code: 0 });
    expect(await check('http://127.0.0.1:1')).toMatchObject({ code: 1 });
  });

  it('uses the names and the password of its own services', () => {
    const { DATABASE_URL, REDIS_URL } = interpolated(node1!.environment!);
    const database = new URL(DATABASE_URL!);
    const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD } = interpolated(postgres!.environment!);

    expect([database.hostname, database.username, database.pathname, database.password]).toEqual([
      'postgres',
      POSTGRES_USER,
      `/${POSTGRES_DB}`,
      POSTGRES_PASSWORD,
    ]);
    expect(new URL(REDIS_URL!).hostname).toBe('redis');
    expect(node1!.depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    });
  });

  it('hardens and restarts every service, and keeps the database away from the outside', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      expect(service, name).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
      if (!['cli', 'sandbox'].includes(name)) expect(service.restart).toBe('unless-stopped');
    }
    expect([postgres!.networks, redis!.networks]).toEqual([['back'], ['back']]);
    expect(compose.networks.back).toEqual({ internal: true });
    expect([postgres!.user, redis!.user]).toEqual(['postgres', 'redis']);
    expect(dockerfile).toMatch(/^USER node$/m);
  });

  it('has volumes that are declared, and files that exist', () => {
    for (const volume of [...proxy!.volumes!, ...postgres!.volumes!]) {
      const [source] = volume.split(':');
      expect(source!.startsWith('./') ? existsSync(join(ROOT, source!)) : source! in compose.volumes, volume).toBe(
        true,
      );
    }
  });

  it('waits long enough for a node to stop, and lets Caddy notice', () => {
    const pause = Number(node1!.environment!.STOP_PAUSE_SECONDS);
    const caddyfile = read('Caddyfile');

    expect(Number.parseInt(node1!.stop_grace_period!, 10)).toBeGreaterThan(pause + 16);
    expect(pause).toBeGreaterThan(2 * Number(/health_interval (\d+)s/.exec(caddyfile)![1]));
    expect(caddyfile).toContain('reverse_proxy node1:3000 node2:3000 {');
    expect(caddyfile).toContain('health_uri /health/ready');
  });
});

describe('the image', () => {
  it('has every folder that its programs import, and installs every package', () => {
    const folders = copied.filter((path) => !path.includes('.'));
    const sources = folders.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        // These build the packages, and are built into the page; they need the tools of a developer.
        .filter((path) => path.endsWith('.ts') && !/^(package|web\/app)\//.test(path))
        .map((path) => read(join(folder, path))),
    );
    const imported = sources.flatMap((source) =>
      [...source.matchAll(/^(?:import|export) (?!type )[^;'`]*?from '([^']+)'|import\('([^']+)'\)/gm)].map(
        ([, fixed, dynamic]) => (fixed ?? dynamic)!,
      ),
    );
    const ofFolders = imported.flatMap((target) => /^\.\.\/(?:\.\.\/)+([\w.]+)/.exec(target)?.[1] ?? []);
    const packages = imported
      .filter((target) => /^[@a-z]/.test(target) && !target.startsWith('node:') && !builtinModules.includes(target))
      .map((target) => /^(@[^/]+\/)?[^/]+/.exec(target)![0]);

    expect([...new Set(ofFolders)].filter((name) => existsSync(join(ROOT, name)) && !copied.includes(name))).toEqual(
      [],
    );
    expect([...new Set(packages)].filter((name) => !(name in packageJson.dependencies))).toEqual([]);
  });

  it('serves, is healthy, has a command line, and becomes unhealthy when it stops', async () => {
    const image = await givenImage();
    const { DATABASE_URL: _, REDIS_URL: __, STOP_PAUSE_SECONDS: ___, ...settings } = interpolated(node1!.environment!);
    const service = await startProgram([relative(ROOT, join(image, 'server/boot/main.js'))], {
      ...settings,
      DATA_DIR: await givenMigratedDirectory(),
      DEMO_DATA: 'off',
      NODE_ENV: 'production',
    });
    const { port } = new URL(service.url);

    expect(await run(healthCommand, { PORT: port })).toMatchObject({ code: 0 });
    expect((await fetch(`${service.url}/docs/guides`)).status).toBe(200);
    expect(await (await fetch(`${service.url}/pages/client.js`)).text()).toContain(
      'export { DeckhandError, createClient',
    );
    expect(await readPage(service.url)).toEqual(filesOfPage());
    expect((await fetch(`${service.url}/metrics`)).status).toBe(401);
    expect(await run(['node', 'server/cli/main.ts', '--help'], {}, image)).toMatchObject({ code: 0 });
    await service.stop('SIGTERM');
    expect(await run(healthCommand, { PORT: port })).toMatchObject({ code: 1 });
  });
});

/** What the Dockerfile copies; the packages of the developer in place of those that `npm ci` installs. */
async function givenImage(): Promise<string> {
  const image = join(await givenDirectory(), 'app');
  await mkdir(image);
  for (const path of copied) await cp(join(ROOT, path), join(image, path), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(image, 'node_modules'));
  for (const program of made) await promisify(execFile)(process.execPath, [join(image, program)]);
  return image;
}

async function run([, ...words]: string[], env: Record<string, string>, cwd = ROOT) {
  const child = spawn(process.execPath, words, { cwd, env: { ...process.env, ...env } });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, printed };
}
