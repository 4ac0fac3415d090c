import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import { MikroORM } from '@mikro-orm/postgresql';

/** A PostgreSQL server to test on: the one of TEST_DATABASE_URL, or one on this machine without a password. */
export async function findTestServer(): Promise<{ url: string } | { url?: undefined; reason: string }> {
  const { TEST_DATABASE_URL } = process.env;
  if (TEST_DATABASE_URL) {
    const isSuperuser = await mayReplaceRows(TEST_DATABASE_URL).catch((cause) => {
      throw new Error('The PostgreSQL server of TEST_DATABASE_URL is unreachable.', { cause });
    });
    if (!isSuperuser) throw new Error('The user of TEST_DATABASE_URL is no superuser: name one who is.');
    return { url: TEST_DATABASE_URL };
  }

  let reason = '';
  for (const user of new Set([userInfo().username, 'postgres'])) {
    const url = `postgresql://${user}@127.0.0.1:5432/postgres`;
    try {
      if (await mayReplaceRows(url)) return { url };
      reason = `${user} is no superuser`;
    } catch (error) {
      reason = (error as Error).message || (error as { code?: string }).code || 'no answer';
    }
  }
  return { reason: `None can be used on 127.0.0.1:5432 (${reason}); set TEST_DATABASE_URL to use another.` };
}

/** Tests bring rows back in any order, without checks of references: only superusers may. */
async function mayReplaceRows(url: string): Promise<boolean> {
  const [role] = await onServer<{ rolsuper: boolean }>(
    url,
    'select rolsuper from pg_roles where rolname = current_user',
  );
  return role?.rolsuper ?? false;
}

/** Whether `pg_dump` is there. It refuses a server that is newer than itself. */
export async function findDumpTools(url: string | undefined): Promise<boolean> {
  if (url === undefined) return false;
  const printed = await promisify(execFile)('pg_dump', ['--version']).catch(() => undefined);
  const [{ version }] = (await onServer(url, "select current_setting('server_version_num') as version")) as [
    { version: string },
  ];
  return Number(/ (\d+)/.exec(printed?.stdout ?? '')?.[1] ?? 0) >= Math.floor(Number(version) / 10_000);
}

export type ServerDatabase = { url: string; remove: () => Promise<unknown> };

/** A new database on a server; its name tells what it is for. A copy of a template needs no migrations. */
export async function givenServerDatabase(
  serverUrl: string,
  purpose: string,
  template?: string,
): Promise<ServerDatabase> {
  const name = `deckhand_${purpose}_${randomBytes(6).toString('hex')}`;
  const url = Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
  await createDatabase(url, template);
  return { url, remove: () => onServer(serverUrl, `drop database ${name} with (force)`) };
}

/** Creates the database that a URL names. */
export async function createDatabase(url: string, template = 'template1'): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  const statement = `create database ${name} template ${template}`;
  await onServer(Object.assign(new URL(url), { pathname: '/postgres' }).href, statement);
}

/** Runs one statement on a connection of its own. */
export async function onServer<Row>(clientUrl: string, statement: string): Promise<Row[]> {
  const orm = await MikroORM.init({
    clientUrl,
    entities: [],
    ensureDatabase: false,
    discovery: { warnWhenNoEntities: false },
    driverOptions: { connectionTimeoutMillis: 2000 },
  });
  try {
    return await orm.em.getConnection().execute(statement);
  } finally {
    await orm.close(true);
  }
}
