import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connect } from '../../server/database/connect.ts';
import { checkServer } from '../../server/database/serverCheck.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { onServer } from '../harness/server.ts';
import { databaseUrl, TEST_SECRET } from '../harness/service.ts';
import { testDb } from '../harness/world.ts';

const warnings: string[] = [];
const log = { warn: (text: string) => void warnings.push(text) } as Parameters<typeof checkServer>[1];

describe.skipIf(!databaseUrl)('a server', () => {
  it('is refused with an encoding that can not store every text', async () => {
    const name = `deckhand_test_${randomBytes(6).toString('hex')}`;
    const url = Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href;
    const server = Object.assign(new URL(databaseUrl!), { pathname: '/postgres' }).href;
    await onServer(server, `create database ${name} encoding 'LATIN1' locale 'C' template template0`);
    const database = await connect(readSettings({ DATABASE_URL: url, JWT_SECRET: TEST_SECRET }));

    await expect(checkServer(database.db, log)).rejects.toThrow(
      'DATABASE_URL: the database has the encoding LATIN1, which can',
    );

    await database.close();
    await onServer(server, `drop database ${name} with (force)`);
  });

  it('is warned about if its clock is more than a minute from that of this machine', async () => {
    for (const seconds of [-7200, -30, 0, 30, 7200])
      await checkServer(await testDb(), log, () => Date.now() + seconds * 1000);

    expect(warnings).toEqual([
      expect.stringMatching(
        /^The clock of this machine and that of the database differ by 7[12]\d\d seconds\. Set both/,
      ),
      expect.stringMatching(
        /^The clock of this machine and that of the database differ by 7[12]\d\d seconds\. Set both/,
      ),
    ]);
  });
});
