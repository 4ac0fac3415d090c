import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import {
  givenDemoDirectory,
  givenDirectory,
  givenMigratedDirectory,
  removeProcesses,
  runToEnd,
  startService,
} from '../harness/process.ts';

const ROOT = join(import.meta.dirname, '../..');
const fileUrl = (path: string) => pathToFileURL(join(ROOT, path)).href;

/** What the ORM's own command line does: it imports the configuration, and asks for the migrations that are still to run. */
const PROGRAM = `
  import { MikroORM } from '${fileUrl('node_modules/@mikro-orm/core/index.js')}';
  import config from '${fileUrl('mikro-orm.config.ts')}';
  const orm = await MikroORM.init(config);
  const [done, pending] = [await orm.migrator.getExecuted(), await orm.migrator.getPending()];
  console.log(done.length > 10, pending.length);
  await orm.close(true);
  process.exit();`;

async function listMigrations(settings: Record<string, string>) {
  const program = join(await givenDirectory(), 'program.mjs');
  await writeFile(program, PROGRAM);
  return runToEnd([program], settings);
}

afterAll(removeProcesses);

it('the command line of the ORM works on the database of the settings', async () => {
  const ended = await listMigrations({ DATA_DIR: await givenMigratedDirectory() });

  expect(ended).toMatchObject({ code: 0, stdout: 'true 0\n' });
});

it('it is refused while the service uses the embedded database', async () => {
  const DATA_DIR = await givenDemoDirectory();
  const service = await startService({ DATA_DIR });

  const ended = await listMigrations({ DATA_DIR });

  expect(ended.code).not.toBe(0);
  expect(ended.stderr).toContain('is in use by another process. If that is the service, stop it first.');
  await service.stop();
});
