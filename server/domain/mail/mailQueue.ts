import { type RawBuilder, sql } from 'kysely';
import { MAIL_KINDS, type MailKind } from '../../../shared/mail.ts';
import { type Db, plannedEachTime, query, withShortTimeout } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';

/** Where mails are stored, and the clock for their attempts. */
export type MailStore = {
  db: Db;
  /** The database's clock, or that of a test. */
  now?: RawBuilder<Date>;
};

/** A mail that this process is sending until its lease ends. */
export type ClaimedMail = Pick<
  Row<'mails'>,
  'id' | 'kind' | 'email' | 'user_id' | 'invitation_id' | 'data' | 'failures' | 'created_at'
> & { lease: string; project_id: number | null };

/** What this process does not send now, so that nobody's mails take all connections. */
export type Busy = {
  projects: number[];
  domains: string[];
  emails: string[];
  hasRoomForNotices: boolean;
  hasRoomForRest: boolean;
};
const NOTHING_BUSY: Busy = {
  ...{ projects: [], domains: [], emails: [] },
  ...{ hasRoomForNotices: true, hasRoomForRest: true },
};

export const domainOf = (email: string) => email.replace(/^[^@]*@?/, '').toLowerCase();

/** Longer than the longest attempt, `LONGEST_ATTEMPT_MILLISECONDS`. */
const LEASE = sql`interval '30 seconds'`;
export const LONGEST_ATTEMPT_MILLISECONDS = 20_000;

/** Mails with a link that somebody waits for go first, then notices about accounts, then invitations, of which there may be a thousand. */
export const URGENCY: MailKind[] = ['password_reset', 'address_confirmation'];
const LAST: MailKind = 'invitation';
const urgency = sql`case kind when ${sql.lit(LAST)} then 9 else coalesce(array_position(${sql.lit(`{${URGENCY.join()}}`)}::text[], kind), 5) end`;

/**
 * Claims the most urgent mail that is due: of the first of each kind, which an index finds, however many wait. Mails of a restored or
 * copied database are held, like its webhooks, until an operator resumes them.
 */
export async function claimMail(
  { db, now = NOW }: MailStore,
  { projects, domains, emails, hasRoomForNotices, hasRoomForRest }: Busy = NOTHING_BUSY,
): Promise<ClaimedMail | undefined> {
  const [claimed] = await query(
    db,
    plannedEachTime(sql<ClaimedMail>`
      with first as materialized (
        select d.* from unnest(${sql.lit(`{${MAIL_KINDS.join()}}`)}::text[]) as k (kind) cross join lateral (
          select id, kind, next_attempt_at from mails
          where state = 'waiting' and kind = k.kind and next_attempt_at <= ${now} and (leased_until is null or leased_until < ${now})
            and (${hasRoomForRest} or (failures = 0 and kind <> ${LAST}))
            and (${hasRoomForNotices} or (failures = 0 and kind = any(${URGENCY}::text[]))) and lower(email) <> all(${emails}::text[])
            and lower(substring(email, position('@' in email) + 1)) <> all(${domains}::text[])
            and (invitation_id is null or (select project_id from invitations where id = invitation_id) <> all(${projects}::int[]))
          order by next_attempt_at, id limit 1 for update skip locked) as d
        where not exists (select from database_state where webhooks_paused_at is not null)
      ), due as (select id from first order by ${urgency}, next_attempt_at, id limit 1)
      update mails m set leased_until = ${now} + ${LEASE} from due where m.id = due.id
      returning m.id, m.kind, m.email, m.user_id, m.invitation_id, m.data, m.failures, m.created_at, m.leased_until::text as lease,
        (select project_id from invitations where id = m.invitation_id)`),
  );
  return claimed;
}

const OUTCOMES = ['sent', 'retried', 'failed', 'dropped'] as const;
type Outcome = (typeof OUTCOMES)[number];

/** How attempts of this process ended, since its start. */
export const mailCounts = new Map<Outcome, number>(OUTCOMES.map((outcome) => [outcome, 0]));
const count = (outcome: Outcome) => mailCounts.set(outcome, (mailCounts.get(outcome) ?? 0) + 1);

/** Also if another process has taken it over meanwhile. One that was dropped meanwhile stays dropped. */
export async function recordSent({ db, now = NOW }: MailStore, { id }: ClaimedMail): Promise<void> {
  await query(
    db,
    sql`update mails set state = 'sent', sent_at = ${now}, leased_until = null, error = null where id = ${id} and state = 'waiting'`,
  );
  count('sent');
}

export async function recordDropped({ db }: MailStore, { id }: ClaimedMail): Promise<void> {
  await query(db, sql`update mails set state = 'dropped', leased_until = null where id = ${id} and state = 'waiting'`);
  count('dropped');
}

/** Ends the lease of an attempt that was interrupted: the next process sends it at once. */
export async function releaseMail({ db }: MailStore, { id, lease }: ClaimedMail): Promise<void> {
  await query(db, sql`update mails set leased_until = null where id = ${id} and leased_until = ${lease}::timestamptz`);
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** How long after each failure the next attempt follows: in all 24 hours, and then no more. */
const RETRY_SECONDS = [10, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 8 * HOUR, 8 * HOUR];

/** Sets the time of the next attempt. Returns false if there is none: a superadmin sees it, and can retry. */
export async function recordFailure(
  { db, now = NOW }: MailStore,
  { id, lease, failures }: ClaimedMail,
  { message, isPermanent }: { message: string; isPermanent: boolean },
): Promise<boolean> {
  const seconds = isPermanent ? undefined : RETRY_SECONDS[failures];
  const next =
    seconds === undefined
      ? sql`state = 'failed'`
      : sql`next_attempt_at = ${now} + make_interval(secs => ${seconds}::int)`;
  await query(
    db,
    sql`
      update mails set failures = failures + 1, error = ${message}, leased_until = null, ${next}
      where id = ${id} and state = 'waiting' and leased_until = ${lease}::timestamptz`,
  );
  count(seconds === undefined ? 'failed' : 'retried');
  return seconds !== undefined;
}

export type WaitingMails = { kind: MailKind; mails: number; oldestSeconds: number };

/** Mails that wait, by kind. */
export async function measureMails(db: Db): Promise<WaitingMails[]> {
  const waiting = await query(
    db,
    withShortTimeout(
      plannedEachTime(sql<WaitingMails>`
      select kind, count(*)::int as mails, greatest(0, extract(epoch from now() - min(created_at)))::float8 as "oldestSeconds"
      from mails where state = 'waiting' group by kind`),
    ),
  );
  return MAIL_KINDS.map((kind) => waiting.find((row) => row.kind === kind) ?? { kind, mails: 0, oldestSeconds: 0 });
}
