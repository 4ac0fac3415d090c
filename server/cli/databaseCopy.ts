import { resolve } from 'node:path';
import { connect, type Database, refuseWithoutDatabase } from '../database/connect.ts';
import { stopFirst } from '../database/embedded/dataDirectory.ts';
import { remindersOf } from '../database/level.ts';
import { findDemoPasswords } from '../database/seed/firstUsers.ts';
import { copyDatabase } from '../database/transfer/copy.ts';
import { sealingKeyIds } from '../domain/account/reencrypt.ts';
import { counted } from '../runtime/count.ts';
import type { Settings } from '../runtime/env.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { readStoredSecret, STORED_SECRET } from '../security/storedSecret.ts';
import { keyId } from '../security/tokens.ts';
import type { Given, Outcome } from './command.ts';
import { erasedAgain, erasuresOf, settleErasures } from './erasures.ts';
import { withDatabase } from './onDatabase.ts';
import { progressBar } from './terminal.ts';

/** From `DATA_DIR` to `DATABASE_URL`: both are settings, since a URL with a password must not be an argument. */
export async function copyToServer({ environment, terminal, input }: Given): Promise<Outcome> {
  const { resume_webhooks: keepsWebhooks = false } = (input ?? {}) as { resume_webhooks?: boolean };
  const lines = await erasuresOf(input);
  if (!environment().DATABASE_URL) {
    throw startFailure('DATABASE_URL: must be set to the empty PostgreSQL database to copy to.');
  }
  return withDatabase(environment, async (target, settings, secret) => {
    refuseWithoutDatabase(settings.DATA_DIR);
    const source = await connect({ ...settings, DATABASE_URL: undefined }).catch(stopFirst(settings.DATA_DIR));
    try {
      const onProgress = ({ table, done, total }: { table: string; done: number; total: number }) =>
        terminal.update(`${progressBar(done, total)} ${done} of ${counted(total, 'row')} (${table})`);
      const copied = copyDatabase(source, target, onProgress, { keepsWebhooks });
      const tables = await copied.finally(() => terminal.update(''));
      const applied = await settleErasures(target, lines);
      const rows = Object.values(tables).reduce((sum, count) => sum + count, 0);
      const next = [...(await nextSteps(source, settings, secret)), ...(await remindersOf(target.db))];
      const done = `Copied ${counted(rows, 'row')} of ${counted(Object.keys(tables).length, 'table')}. All values were compared and are equal. The embedded database was not changed.`;
      const erased = lines ? [erasedAgain(applied)] : [];
      return {
        result: { rows, tables, next },
        message: [done, ...erased, ...next.map((step) => `- ${step}`)].join('\n'),
      };
    } finally {
      await source.close();
    }
  });
}

async function nextSteps({ db }: Database, settings: Settings, secret: string | undefined): Promise<string[]> {
  const demoUsers = await findDemoPasswords(db);
  const demoPasswords = `Anybody can sign in as ${demoUsers.join(', ')}, since the demo password is public: give them other passwords, or deactivate them (npx deckhand users update).`;
  return [
    ...(await secretSteps({ db }, settings, secret)),
    ...(demoUsers.length > 0 ? [demoPasswords] : []),
    `Start the service with DATABASE_URL. Keep ${resolve(settings.DATA_DIR)} until it works, then delete it.`,
  ];
}

/** Which secrets the service needs for the sessions and second factors that were copied; never shows one. */
async function secretSteps({ db }: Pick<Database, 'db'>, settings: Settings, secret: string | undefined) {
  const stored = await readStoredSecret(settings.DATA_DIR);
  if (stored === undefined && secret === undefined) {
    return ['Set JWT_SECRET to that of the service so far: sessions and second factors need it.'];
  }

  const steps: string[] = [];
  const given = [secret, ...settings.JWT_PREVIOUS_SECRETS].filter((known) => known !== undefined);
  if (stored !== undefined && !given.includes(stored)) {
    const setting = secret === undefined ? 'JWT_SECRET' : 'JWT_PREVIOUS_SECRETS';
    const path = resolve(settings.DATA_DIR, STORED_SECRET);
    steps.push(`Set ${setting} to the content of ${path}: sessions and second factors need it.`);
  }
  const readable = new Set([...given, stored ?? ''].map(keyId));
  if ((await sealingKeyIds(db)).some((id) => !readable.has(id))) {
    steps.push(
      'Some second factors or webhooks are encrypted with a secret that is not known here: add the JWT_SECRET that encrypted them to JWT_PREVIOUS_SECRETS, otherwise their codes are invalid.',
    );
  }
  return steps;
}
