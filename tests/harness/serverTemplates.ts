import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { migrate } from '../../server/database/migrate.ts';
import { query } from '../../server/database/query.ts';
import { fillWithDemoData } from '../../server/database/seed/demo.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { createDatabase, findTestServer, givenServerDatabase, onServer, type ServerDatabase } from './server.ts';
import { madeOnce, workplace } from './workplace.ts';

/** Databases on the test server that are made once for the whole run, and copied, which is far cheaper. */

type Contents = 'migrated' | 'demo';

/** A new database on the test server with all tables, or with the demo data, too. */
export const givenFilledDatabase = async (purpose: string, contents: Contents): Promise<ServerDatabase> =>
  givenServerDatabase((await findUrl())!, purpose, await givenTemplate(contents));

const findUrl = async () => (await findTestServer()).url;
const prefix = () => `deckhand_template_${basename(workplace()).toLowerCase().replace(/\W/g, '_')}_`;

export async function givenTemplate(contents: Contents): Promise<string> {
  const name = prefix() + contents;
  await madeOnce(`template-${contents}`, async (path) => {
    const url = Object.assign(new URL((await findUrl())!), { pathname: `/${name}` }).href;
    await createDatabase(url, contents === 'demo' ? await givenTemplate('migrated') : undefined);
    const database = await connect(
      readSettings({ DATABASE_URL: url, JWT_SECRET: 'a secret that no copy of a template has' }),
    );
    await (contents === 'demo' ? fillWithDemoData(database) : migrate(database));
    // Each copy begins its own.
    await query(database.db, sql`delete from incarnations`);
    await database.close();
    await writeFile(path, '');
  });
  return name;
}

/** At the end of a run. */
export async function removeTemplates(): Promise<void> {
  const url = await findUrl();
  if (!url) return;
  const made = `select datname from pg_database where starts_with(datname, '${prefix()}')`;
  for (const { datname } of await onServer<{ datname: string }>(url, made))
    await onServer(url, `drop database ${datname} with (force)`);
}
