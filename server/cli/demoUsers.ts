import { type FirstAdmin, randomPassword, replaceDemoUsers } from '../database/seed/firstUsers.ts';
import type { Given, Outcome } from './command.ts';
import { callOnDatabase, withExistingDatabase } from './onDatabase.ts';

/** Nobody can sign in with the public password any more. Somebody has to be a superadmin, so there is another one afterwards. */
export async function lockDemoUsers(given: Given): Promise<Outcome> {
  // Before it is stored: a command that is interrupted leaves no superadmin whose password nobody knows.
  const tell = async ({ email, password }: FirstAdmin) =>
    given.terminal.write(`The superadmin is ${email} now, with the password ${password}: sign in and change it.\n`);
  const { users, admin, place } = await withExistingDatabase(given.environment, async (database, place) => ({
    ...(await replaceDemoUsers(database, tell)),
    place,
  }));
  if (users.length === 0)
    return { result: { locked: [] }, message: `Nothing changed: no user has the demo password (${place}).` };

  // As the operator.
  const where = { ...given, chosen: {} };
  await callOnDatabase(where, async (call) => {
    for (const { id } of users) await call('users.update', { id, password: randomPassword(), is_active: false });
  });
  const message = `Got random passwords and are not active any more: ${users.map(({ email }) => email).join(', ')} (${place}).`;
  return { result: { locked: users.map(({ id }) => id), admin: admin?.email ?? null }, message };
}
