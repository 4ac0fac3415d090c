import { resolve } from 'node:path';
import type { Database } from '../database/connect.ts';
import { adoptDatabase } from '../database/incarnation.ts';
import { endErasuresDue } from '../database/level.ts';
import { pendingMigrations } from '../database/migrate.ts';
import {
  type AppliedErasures,
  applyErasures,
  type ErasureLine,
  listErasures,
  readErasuresToApply,
} from '../domain/account/erasureFile.ts';
import { counted } from '../runtime/count.ts';
import { startFailure } from '../runtime/startFailure.ts';
import type { Given, Outcome } from './command.ts';
import { misuse } from './misuse.ts';
import { withExistingDatabase } from './onDatabase.ts';

/** What `database restore` and `database copy` are told about persons who were erased since; undefined if there are none. */
export async function erasuresOf(input: unknown): Promise<ErasureLine[] | undefined> {
  const { erasures, without_erasures } = (input ?? {}) as { erasures?: string; without_erasures?: boolean };
  if ((erasures === undefined) === (without_erasures !== true))
    throw misuse(
      'Persons may have been erased since: give the file of erasures with --erasures FILE (in DATA_DIR or at ERASURES_FILE, or what erasures list prints), or --without-erasures if there is none.',
    );
  return erasures === undefined ? undefined : readErasuresToApply(resolve(erasures));
}

/** Erases them in a restored or copied database, which may be used then. */
export async function settleErasures(
  { db }: Pick<Database, 'db'>,
  lines: ErasureLine[] | undefined,
): Promise<AppliedErasures> {
  const applied = lines ? await applyErasures(db, lines) : { persons: 0, unknown: 0 };
  await endErasuresDue(db);
  return applied;
}

export function erasedAgain({ persons, unknown }: AppliedErasures): string {
  const erased = `Erased ${counted(persons, 'person')} again.`;
  if (unknown === 0) return erased;
  return `${erased} ${counted(unknown, 'person')} of the file ${unknown === 1 ? 'is' : 'are'} not in this database: created after the backup, or the file is that of another service.`;
}

export const listOf = ({ environment }: Given): Promise<Outcome> =>
  withExistingDatabase(environment, async ({ db }) => {
    const lines = await listErasures(db);
    return { result: { erasures: lines }, message: lines.map((line) => JSON.stringify(line)).join('\n') };
  });

export const applyFile = async ({ input, environment }: Given): Promise<Outcome> =>
  tell(environment, await readErasuresToApply(resolve((input as { file: string }).file)));

export const tellNone = ({ environment }: Given): Promise<Outcome> => tell(environment, undefined);

const tell = (environment: Given['environment'], lines: ErasureLine[] | undefined): Promise<Outcome> =>
  withExistingDatabase(environment, async ({ db }, place) => {
    if ((await pendingMigrations(db)).length > 0)
      throw startFailure(
        'The tables are those of an earlier version. Bring them up to date first: npx deckhand migrate',
      );
    await adoptDatabase(db);
    const applied = await settleErasures({ db }, lines);
    const message = `${erasedAgain(applied)} The service may use the database now (${place}).`;
    return { result: applied, message };
  });
