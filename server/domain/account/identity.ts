import { hash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { badRequest, forbidden, notFound } from '../../../shared/errors.ts';
import type { Page } from '../../../shared/paging.ts';
import type { IdentityChoice } from '../../../shared/sso.ts';
import { readPage } from '../../database/page.ts';
import { type Db, mapConstraintErrors, query, transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { countRows, rowById } from '../../database/rows.ts';
import type { NewRow } from '../../database/tables.ts';
import { type IdentityProvider, LONGEST_LOGOUT_SECONDS } from '../../security/identityProvider.ts';
import type { AccountContext, With } from '../access/context.ts';
import { BY_THE_SERVICE, type WriteContext, writeEvents } from '../event/event.ts';

/** Links an identity to a user, in a transaction. Returns its id. */
export async function addIdentity(context: WriteContext, row: NewRow<'identities'>): Promise<number> {
  const inserted = context.db.insertInto('identities').values(row).returning('id').executeTakeFirstOrThrow();
  const { id } = await mapConstraintErrors(inserted, {
    identities_issuer_subject_unique: () =>
      forbidden('This identity was linked in the meantime. Start the sign-in again.', 'sso_refused'),
  });
  const { user_id } = row;
  await writeEvents(context, [{ type: 'identity.linked', subject_id: id, user_id, data: { user_id } }]);
  return id;
}

/** The caller's accounts at identity providers. */
export async function listIdentities({ db, caller, services: { identityProviders } }: AccountContext, page: Page) {
  const own = db
    .selectFrom('identities')
    .select(['id', 'issuer', 'subject', 'created_at', 'last_used_at'])
    .where('user_id', '=', caller.id);
  const { identities, next_cursor } = await readPage('identities', own, page);
  const providers = [...identityProviders.values()].map(({ settings }) => settings);
  const named = identities.map((identity) => {
    const { name: issuer_name = null, title: issuer_title = null } =
      providers.find(({ issuer }) => issuer === identity.issuer) ?? {};
    return { ...identity, issuer_name, issuer_title };
  });
  return { identities: named, next_cursor };
}

/** Unlinks an identity; its sessions end. The last way to sign in stays. */
export async function unlinkIdentity(context: AccountContext, { id }: IdentityChoice): Promise<void> {
  const { caller } = context;
  const issuers = issuersOf(context);
  await transact(context.db, async (db) => {
    // Locks the user: of two calls at once, the second sees what the first has left.
    const { password_hash } = await rowById(db, 'users', caller.id, ['password_hash'], { lock: 'no key update' });
    const own = await db.selectFrom('identities').select(['id', 'issuer']).where('user_id', '=', caller.id).execute();
    if (!own.some((identity) => identity.id === id)) throw notFound('You have not linked such an identity.');
    const others = own.filter((identity) => identity.id !== id && issuers.includes(identity.issuer));
    if (password_hash === null && others.length === 0)
      throw badRequest(
        'This is your only way to sign in. Link another identity first, or ask a superadmin to give the account a password.',
        'last_way_in',
      );
    await db.deleteFrom('identities').where('id', '=', id).execute();
    const data = { user_id: caller.id };
    await writeEvents({ ...context, db }, [{ type: 'identity.unlinked', subject_id: id, data }]);
  });
}

/**
 * Unlinks what a thief may have linked: whatever was linked within the last days. Without a password, a way to sign in stays: the identity
 * of the calling session, or the oldest one. Returns how many are left.
 */
export async function unlinkDoubtful(context: WriteContext, user_id: number, sessionId?: string): Promise<number> {
  const { db } = context;
  const unlinked = await query(
    db,
    sql<{ id: number }>`
      delete from identities where user_id = ${user_id} and created_at > now() - make_interval(days => ${sql.lit(DOUBTFUL_DAYS)})
        and ((select password_hash is not null from users where id = ${user_id}) or id <> (
          select i.id from identities i where i.user_id = ${user_id}
          order by i.id is distinct from (select identity_id from sessions where id = ${sessionId ?? null}::uuid), i.created_at, i.id limit 1))
      returning id`,
  );
  const data = { user_id };
  const events = unlinked.map(({ id }) => ({ type: 'identity.unlinked' as const, subject_id: id, user_id, data }));
  await writeEvents(context, events);
  return countRows(db, 'identities', sql`user_id = ${user_id}`);
}
/** A mail tells of each link, so that the person has noticed by then. */
const DOUBTFUL_DAYS = 7;

const issuersOf = ({ services: { identityProviders } }: With<'identityProviders'>) =>
  [...identityProviders.values()].map(({ settings }) => settings.issuer);

/** At the start: ends sessions of issuers that the settings no longer have. */
export async function endSessionsOfOthers(db: Db, services: With<'identityProviders'>['services']): Promise<number> {
  const isOfOther = sql`i.issuer <> all(${issuersOf({ services })}::text[])`;
  // Asked first: a node may start on a server that is read-only for the moment.
  const due = await query(
    db,
    sql`select from sessions s join identities i on i.id = s.identity_id where ${isOfOther} and ${IS_OPEN} limit 1`,
  );
  return due.length === 0 ? 0 : endSsoSessions({ ...BY_THE_SERVICE, db }, isOfOther);
}

/** Back-channel logout: ends the sessions of this person, or of this session, at the provider. Each token works once. */
export async function endSsoLogout(context: WriteContext, provider: IdentityProvider, token: string): Promise<number> {
  const { sub, sid, jti, issuedAt } = await provider.readLogoutToken(token);
  const token_hash = hash('sha256', JSON.stringify([provider.settings.issuer, jti]));
  const expires_at = sql<Date>`now() + make_interval(secs => ${sql.lit(LOGOUT_TOKEN_KEPT_SECONDS)})`;
  return transact(context.db, async (db) => {
    const row = db.insertInto('logout_tokens_used').values({ token_hash, expires_at });
    const { numInsertedOrUpdatedRows } = await row.onConflict((same) => same.doNothing()).executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows === 0n) throw new Error('It was sent before.');
    return endSsoSessions(
      { ...context, db },
      sql`i.issuer = ${provider.settings.issuer} and (${sub ?? null}::text is null or i.subject = ${sub ?? null})
      and (${sid ?? null}::text is null or s.issuer_session = ${sid ?? null})
      and s.created_at <= ${issuedAt}::timestamptz + make_interval(secs => ${sql.lit(LATEST_SECONDS)})`,
    );
  });
}
/** Until it is refused for its age, however much the clocks differ. */
const LOGOUT_TOKEN_KEPT_SECONDS = 2 * LONGEST_LOGOUT_SECONDS;

export const LOGOUT_TOKEN_REMOVAL: Removal = {
  table: 'logout_tokens_used',
  due: (now) => sql`t.expires_at < ${now}`,
  by: 'expires_at',
};

/** The clock of the provider may be behind. */
const LATEST_SECONDS = 60;

const IS_OPEN = sql`s.revoked_at is null and s.expires_at > now()`;

async function endSsoSessions(context: WriteContext, which: RawBuilder<unknown>): Promise<number> {
  return transact(context.db, async (db) => {
    const ended = await query(
      db,
      sql<{ user_id: number }>`
        update sessions s set revoked_at = now() from identities i
        where i.id = s.identity_id and ${which} and ${IS_OPEN} returning s.user_id`,
    );
    const byUser = Map.groupBy(ended, ({ user_id }) => user_id);
    await writeEvents(
      { ...context, db },
      [...byUser].map(([user_id, { length: count }]) => ({
        type: 'sessions.ended',
        user_id,
        data: { user_id, count },
      })),
    );
    return ended.length;
  });
}
