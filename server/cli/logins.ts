import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { startFailure } from '../runtime/startFailure.ts';
import type { ReadEnvironment } from './command.ts';

/** The logins of this user of the machine, one for each service, in a file that only they can read. */
const Login = z.object({ email: z.string(), token: z.string() });
export type Login = z.output<typeof Login>;
const Logins = z.record(z.string(), Login);
type Logins = z.output<typeof Logins>;

export async function readLogins(environment: ReadEnvironment): Promise<Logins> {
  const path = pathOf(environment);
  try {
    return Logins.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw startFailure(`${path} can't be read; delete it, and sign in again.`, error);
  }
}

/** Stores the login to a service, or deletes it. */
export async function keepLogin(environment: ReadEnvironment, url: string, login: Login | undefined): Promise<void> {
  const { [url]: _, ...others } = await readLogins(environment);
  const logins = login ? { ...others, [url]: login } : others;

  const path = pathOf(environment);
  const unfinished = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await chmod(dirname(path), 0o700);
    // Renamed when it is complete, so that an interruption loses no login.
    await writeFile(unfinished, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    await rename(unfinished, path);
  } catch (error) {
    throw startFailure(`${path} can't be written: ${(error as Error).message}.`, error);
  }
}

/** A relative XDG_CONFIG_HOME is invalid, and ignored. */
function pathOf(environment: ReadEnvironment): string {
  const { XDG_CONFIG_HOME = '', HOME } = environment();
  const config = isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(HOME || homedir(), '.config');
  return join(config, 'deckhand', 'logins.json');
}
