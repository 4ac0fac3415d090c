import { sql } from 'kysely';
import type { Log } from '../runtime/log.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { type Db, queryOne } from './query.ts';

const MOST_SECONDS_APART = 60;

/** Refuses a database that can't store every text, and warns of a clock that differs: receivers refuse old signatures of webhooks. */
export async function checkServer(db: Db, log: Pick<Log, 'warn'>, now = () => Date.now()): Promise<void> {
  const before = now();
  const { encoding, time } = await queryOne(
    db,
    sql<{
      encoding: string;
      time: Date;
    }>`select current_setting('server_encoding') as encoding, clock_timestamp() as time`,
  );
  if (encoding !== 'UTF8')
    throw startFailure(
      `DATABASE_URL: the database has the encoding ${encoding}, which can't store every text. Use one with UTF8: createdb --encoding UTF8 --template template0 NAME.`,
    );
  const [early, late] = [before - time.getTime(), now() - time.getTime()];
  const seconds = Math.round(Math.max(early, -late, 0) / 1000);
  if (seconds > MOST_SECONDS_APART)
    log.warn(
      `The clock of this machine and that of the database differ by ${seconds} seconds. Set both by NTP: otherwise receivers refuse signatures of webhooks, and sign-ins with codes fail.`,
    );
}
