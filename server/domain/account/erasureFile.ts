import { access, constants, open, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sql } from 'kysely';
import { z } from 'zod';
import { endErasuresDue, mayHaveErased } from '../../database/level.ts';
import { type Db, query } from '../../database/query.ts';
import type { Settings } from '../../runtime/env.ts';
import type { Log } from '../../runtime/log.ts';
import { startFailure } from '../../runtime/startFailure.ts';
import { BY_THE_SERVICE } from '../event/event.ts';
import { erasePerson } from './erasure.ts';

/**
 * The operator's file of erasures, a line of JSON for each. It outlives the database: after a restore, whoever is in it is erased
 * again.
 */
const Line = z.object({ user_id: z.int(), user_created_at: z.iso.datetime(), erased_at: z.iso.datetime() });
export type ErasureLine = z.output<typeof Line>;

/** Throws for a file that can't be read, or that is another one. A line that a killed process left half written is skipped. */
export async function readErasures(path: string): Promise<ErasureLine[]> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw startFailure(`${path} can't be read: ${error.message}.`, error);
  });
  return text.split('\n').flatMap((line, at) => {
    if (line.trim() === '') return [];
    const parsed = Line.safeParse(parseLine(line));
    if (parsed.success) return [parsed.data];
    if (line.startsWith('{"user_id":') && !line.endsWith('}')) return [];
    throw startFailure(`${path} is not a file of erasures: see line ${at + 1}.`);
  });
}

/** After a restore. The service makes no empty file: one was cut off, and would bring back everybody. */
export async function readErasuresToApply(path: string): Promise<ErasureLine[]> {
  const lines = await readErasures(path);
  if (lines.length > 0) return lines;
  throw startFailure(`${path} has no erasures. If nobody was erased, use erasures none, or --without-erasures.`);
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** How many persons of a file were erased again, and how many the database does not have. */
export type AppliedErasures = { persons: number; unknown: number };

/** Erases those of the file who are in the database, unless they are erased there. */
export async function applyErasures(db: Db, lines: readonly ErasureLine[]): Promise<AppliedErasures> {
  const listed = await query(
    db,
    sql<{ id: number; isKnown: boolean; isErased: boolean }>`
      select distinct l.user_id as id, u.id is not null as "isKnown", u.erased_at is not null as "isErased"
      from jsonb_to_recordset(${JSON.stringify(lines)}::jsonb) as l (user_id int, user_created_at timestamptz)
      left join users u on u.id = l.user_id and u.created_at = l.user_created_at order by 1`,
  );
  const found = listed.filter(({ isKnown, isErased }) => isKnown && !isErased);
  for (const { id } of found) await erasePerson({ ...BY_THE_SERVICE, db }, id, true);
  return { persons: found.length, unknown: listed.filter(({ isKnown }) => !isKnown).length };
}

type FileSettings = Pick<Settings, 'ERASURES_FILE' | 'DATABASE_URL' | 'DATA_DIR'>;

/** Undefined on a server without the setting. */
export const erasuresFileOf = ({ ERASURES_FILE, DATABASE_URL, DATA_DIR }: FileSettings): string | undefined =>
  ERASURES_FILE ?? (DATABASE_URL === undefined ? join(DATA_DIR, 'erasures.jsonl') : undefined);

/** Why nothing can be appended to the file, if so. It makes no file: an empty one would look as if nobody was erased. */
export async function erasuresFileProblem(path: string): Promise<string | undefined> {
  const isMissing = (error: NodeJS.ErrnoException) => error.code === 'ENOENT';
  try {
    const found = await stat(path).catch((error) => (isMissing(error) ? undefined : Promise.reject(error)));
    if (found && !found.isFile()) return 'it is not a file';
    await access(found ? path : dirname(path), constants.W_OK);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** At the start on a restored database. Only with the setting: a file in DATA_DIR may be as old as the rest of it. */
export async function applyFileIfDue(db: Db, { ERASURES_FILE: file }: FileSettings, log: Log): Promise<void> {
  if (file === undefined || !(await mayHaveErased(db))) return;
  const lines = await readErasuresToApply(file).catch((error) => log.warn(`ERASURES_FILE: ${error.message}`));
  if (!lines) return;
  const applied = await applyErasures(db, lines);
  await endErasuresDue(db);
  log.warn(applied, 'The persons of ERASURES_FILE were erased in the restored database.');
}

/** The erasures of a database as lines, oldest first. */
export const listErasures = async (db: Db, since = new Date(0)): Promise<ErasureLine[]> =>
  (
    await query(
      db,
      sql<Record<'user_created_at' | 'erased_at', Date> & { user_id: number }>`
        select user_id, user_created_at, erased_at from erasures where erased_at >= ${since} order by erased_at, user_id`,
    )
  ).map(({ user_id, user_created_at, erased_at }) => ({
    ...{ user_id, user_created_at: user_created_at.toISOString(), erased_at: erased_at.toISOString() },
  }));

/** A transaction commits at most this long after it began, which is the time that its row has. */
const OVERLAP_MILLISECONDS = 3_600_000;

/**
 * Appends to the file what the database has and the file has not. What is in the file decides, so that nothing is lost if a process
 * is killed between the commit and this, and each node may have a file of its own.
 */
export function makeErasureFile(path: string) {
  let known: Set<string> | undefined;
  let latest = 0;
  return {
    /** `last` is the time of the last erasure in the database: nothing is read unless it is new. */
    append: async (db: Db, last: Date | null): Promise<void> => {
      known ??= new Set((await readIfExists(path)).map(nameOf));
      if (last === null || last.getTime() <= latest) return;
      const missing = (await listErasures(db, new Date(latest - OVERLAP_MILLISECONDS))).filter(
        (line) => !known?.has(nameOf(line)),
      );
      if (missing.length > 0) await appendLines(path, missing);
      for (const line of missing) known.add(nameOf(line));
      latest = last.getTime();
    },
  };
}

const nameOf = ({ user_id, user_created_at }: ErasureLine) => `${user_id} ${user_created_at}`;

const readIfExists = (path: string) =>
  readErasures(path).catch((error) => {
    if (error.cause?.code === 'ENOENT') return [];
    throw error;
  });

/** Adds the lines that a file does not have. */
export async function addToFile(path: string, lines: ErasureLine[]): Promise<void> {
  const known = new Set((await readIfExists(path)).map(nameOf));
  const missing = lines.filter((line) => !known.has(nameOf(line)));
  if (missing.length > 0) await appendLines(path, missing);
}

async function appendLines(path: string, lines: ErasureLine[]): Promise<void> {
  const file = await open(path, 'a+', 0o600);
  try {
    const { size } = await file.stat();
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    const isTorn = size > 0 && buffer.toString() !== '\n';
    await file.appendFile(`${isTorn ? '\n' : ''}${lines.map((line) => `${JSON.stringify(line)}\n`).join('')}`);
    await file.sync();
  } finally {
    await file.close();
  }
}
