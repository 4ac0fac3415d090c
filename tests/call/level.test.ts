import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect } from '../../server/database/connect.ts';
import {
  finishOwnUpgrade,
  finishUpgrade,
  LATEST_LEVEL,
  levelOf,
  mustBeAtLevel,
  mustKnowLevel,
} from '../../server/database/level.ts';
import { migrate } from '../../server/database/migrate.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { VERSION } from '../../server/runtime/version.ts';
import { givenDirectory, givenMigratedDirectory } from '../harness/process.ts';
import { testDatabase, withOwnDatabase } from '../harness/service.ts';
import { givenWorld } from '../harness/world.ts';

withOwnDatabase();

/** Undone at the end, so that the level and its cache stay as they were. */
const inTransaction = async (work: Parameters<typeof transactionOf>[1]) => transactionOf(await testDatabase(), work);

type Opened = Awaited<ReturnType<typeof testDatabase>>;
async function transactionOf({ db }: Opened, work: (db: Opened['db']) => Promise<void>): Promise<void> {
  const undone = new Error('undone');
  const run = db.transaction().execute(async (db) => {
    await work(db);
    throw undone;
  });
  await expect(run).rejects.toBe(undone);
}

describe('the level of a database', () => {
  it('is the latest one where no node of an earlier version can run', async () => {
    expect(await levelOf((await testDatabase()).db)).toBe(LATEST_LEVEL);
  });

  it('stays with old nodes until an operator finishes the upgrade; 400 until then', async () => {
    await givenWorld();
    await inTransaction(async (db) => {
      await query(db, sql`delete from database_state`);
      await finishOwnUpgrade({ db, isEmbedded: false });
      expect(await levelOf(db)).toBe(0);
      await expect(mustBeAtLevel(db, 1)).rejects.toMatchObject({ code: 'BAD_REQUEST' });

      expect(await finishUpgrade(db)).toBe(0);

      expect(await query(db, sql`select level, version from database_state`)).toEqual([
        { level: LATEST_LEVEL, version: VERSION },
      ]);
      expect(await levelOf(db)).toBe(LATEST_LEVEL);
      await mustBeAtLevel(db, 1);
    });
  });

  it('is raised by database finish-upgrade, which can be repeated', async () => {
    const settings = { DATA_DIR: await givenMigratedDirectory() };
    const finish = () => runCommandLine(['database', 'finish-upgrade'], () => settings);
    const database = await connect(readSettings(settings));
    await query(database.db, sql`update database_state set level = 0`);
    await database.close();

    expect(await finish()).toEqual({
      exitCode: 0,
      printed: expect.stringContaining(
        `The upgrade is finished: the database is at level ${LATEST_LEVEL}, it was at 0 (DATA_DIR `,
      ),
    });
    expect((await finish()).printed).toBe(
      `Nothing changed: the database is at level ${LATEST_LEVEL}, the latest of this version (DATA_DIR ${settings.DATA_DIR}).`,
    );
  });

  it.each([
    ['database', 'finish-upgrade'],
    ['database', 'mark-restored'],
    ['database', 'verify'],
    ['webhooks', 'resume'],
  ])('is not that of a new database: %s %s creates none', async (...command) => {
    const DATA_DIR = join(await givenDirectory(), 'data');

    expect(await runCommandLine(command, () => ({ DATA_DIR }))).toMatchObject({
      exitCode: 1,
      complaint: expect.stringMatching(/^DATA_DIR: there is no embedded database in .*data\./),
    });
    expect(existsSync(DATA_DIR)).toBe(false);
  });

  it('never falls: a node of an earlier version leaves it as it is', async () => {
    await inTransaction(async (db) => {
      await query(db, sql`update database_state set level = ${LATEST_LEVEL + 1}`);

      await finishOwnUpgrade({ db, isEmbedded: true });

      expect(await levelOf(db)).toBe(LATEST_LEVEL + 1);
    });
  });

  it('that is later than this version is refused at the start, with the version that is needed', async () => {
    const settings = { DATA_DIR: await givenMigratedDirectory() };
    const database = await connect(readSettings(settings));
    await mustKnowLevel(database.db);
    await query(database.db, sql`update database_state set level = ${LATEST_LEVEL + 1}, version = '99.1.0'`);

    await expect(migrate(database)).rejects.toThrow(
      `The database needs version 99.1.0 or later of Deckhand: it is at level ${LATEST_LEVEL + 1}, and this version, ${VERSION}, knows only level ${LATEST_LEVEL}. Start that version, or`,
    );
    await query(database.db, sql`drop table database_state`);
    await mustKnowLevel(database.db);
    await database.close();
  });
});
