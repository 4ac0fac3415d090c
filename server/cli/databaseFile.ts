import { resolve } from 'node:path';
import { stopFirst } from '../database/embedded/dataDirectory.ts';
import { restoreBackup, writeBackup } from '../database/transfer/backup.ts';
import { addToFile, erasuresFileOf } from '../domain/account/erasureFile.ts';
import { readSettings, type Settings } from '../runtime/env.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { readStoredSecret } from '../security/storedSecret.ts';
import type { Given, Outcome, ReadEnvironment } from './command.ts';
import { erasedAgain, erasuresOf, settleErasures } from './erasures.ts';
import { misuse } from './misuse.ts';

const MEBIBYTE = 1024 * 1024;

export async function backup({ input, environment }: Given): Promise<Outcome> {
  const file = fileOf(input);
  const { DATA_DIR } = embeddedSettings(environment, 'pg_dump');
  const size = await writeBackup(DATA_DIR, file).catch(stopFirst(DATA_DIR));
  const secret = (await readStoredSecret(DATA_DIR))
    ? 'It contains the generated secret: keep it as safe as the data.'
    : 'Keep JWT_SECRET, too: it is not in the file.';
  return { result: { file, size }, message: `Wrote ${file} (${(size / MEBIBYTE).toFixed(1)} MiB). ${secret}` };
}

export async function restore({ input, environment }: Given): Promise<Outcome> {
  const file = fileOf(input);
  const settings = embeddedSettings(environment, 'pg_restore');
  const { DATA_DIR, JWT_SECRET } = settings;
  const lines = await erasuresOf(input);
  let erased: string[] = [];
  await restoreBackup(DATA_DIR, file, async (database) => {
    const applied = await settleErasures(database, lines);
    if (lines) erased = [erasedAgain(applied)];
  });
  // Also those who are not in this backup, for the next restore.
  if (lines) await addToFile(erasuresFileOf(settings) as string, lines);
  const message = [
    `Restored ${file} into ${resolve(DATA_DIR)}.`,
    ...erased,
    ...(JWT_SECRET ? [] : ['If the service was started with JWT_SECRET, it needs the same one again.']),
    'Webhooks are paused, and mails are held, until npx deckhand webhooks resume.',
  ];
  return { result: { file, directory: resolve(DATA_DIR) }, message: message.join(' ') };
}

function fileOf(input: unknown): string {
  const { file } = input as { file: string };
  if (file === '') throw misuse('--file must be the path of a file.');
  return resolve(file);
}

function embeddedSettings(environment: ReadEnvironment, instead: string): Settings {
  const given = environment();
  if (given.DATABASE_URL) {
    throw startFailure(
      `DATABASE_URL: is set, and this command is for the embedded database. Use ${instead} for a server.`,
    );
  }
  return readSettings(given);
}
