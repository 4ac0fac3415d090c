import { sql } from 'kysely';
import { GRANTS_SCOPE } from './scopes.ts';

/** The scopes of operations that need `grants:write` since it exists. */
const GRANTING_SCOPES = ['members:write', 'plans:write', 'users:write', 'webhooks:write'];

/** What a key may call: one that was created before `grants:write` existed keeps it. */
export const scopesOf = (key: string) => {
  const scopes = sql.ref<string[]>(`${key}.scopes`);
  return sql<
    string[]
  >`case when ${sql.ref(`${key}.names_grants`)} or not ${scopes} && ${sql.lit(`{${GRANTING_SCOPES}}`)}
    then ${scopes} else ${scopes} || ${sql.lit(GRANTS_SCOPE)}::text end`;
};
