import { connect } from '../../server/database/connect.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { JWT_SECRET } from '../faults/world.ts';
import { givenSettings, type StartedService, startAsScript, startProgram } from '../harness/process.ts';
import { type DatabaseUsage, watchDatabase } from './usage.ts';
import { addUsers, type Users } from './users.ts';
import type { Rival, Surface } from './workloads.ts';

/** Starts the service and its rivals on new databases. `removeProcesses` removes all of them. */

export type Settings = Record<string, string>;

/** The rate limit is on, as in production, but too high to be reached. */
export const LIMITS = { JWT_SECRET, RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'warn' };

/** Fewer for the embedded database, which is for small teams. */
const usersOn = (isEmbedded: boolean) => (isEmbedded ? 8 : 32);

/** A database with the demo data and many users. */
export async function givenUsers({ isEmbedded = false, hasStatistics = true } = {}) {
  const settings: Settings = { ...(await givenSettings('demo', { isEmbedded })), ...LIMITS };
  const database = await connect(readSettings(settings));
  const users = await addUsers(database, usersOn(isEmbedded), { hasStatistics });
  await database.close();
  return { settings, users };
}

/** What serves the calls of a benchmark; with the embedded database there are no rivals and no database server to watch. */
export type Programs = {
  service: StartedService;
  rivals: Partial<Record<Rival, StartedService>>;
  usage: DatabaseUsage | undefined;
  users: Users;
};

/** Starts the service and its rivals as separate processes on one new database, or only the service on an embedded one. */
export async function withPrograms<Result>(
  work: (programs: Programs) => Promise<Result>,
  { isEmbedded = false, hasStatistics = true, before = undefined as string | undefined, more = {} as Settings } = {},
): Promise<Result> {
  const { settings, users } = await givenUsers({ isEmbedded, hasStatistics });
  const all = { ...settings, ...more };
  const service = await startAsScript(all);
  const rivals = isEmbedded ? {} : await startRivals(all, before);
  const usage = isEmbedded ? undefined : await watchDatabase(settings.DATABASE_URL!);
  const result = await work({ service, rivals, usage, users });
  await Promise.all([...Object.values(rivals), service, usage].map((each) => each?.stop()));
  return result;
}

async function startRivals(settings: Settings, before: string | undefined) {
  const rivals: Programs['rivals'] = {};
  for (const name of before === undefined ? (['lean floor', 'Fastify'] as const) : RIVALS)
    rivals[name] = await startRival(name, settings, before);
  return rivals;
}

const RIVALS: Rival[] = ['lean floor', 'Fastify', 'before'];

export function startRival(name: Rival, settings: Settings, before?: string): Promise<StartedService> {
  if (name === 'before') return startAsScript(settings, before);
  const program = name === 'Fastify' ? 'plainFastify' : 'leanFloor';
  return startProgram([`tests/benchmarks/${program}.ts`], settings);
}

/** The service on a new database with the demo data. */
export async function givenDemo({ isEmbedded }: { isEmbedded: boolean }, more: Settings = {}) {
  const settings: Settings = { ...(await givenSettings('demo', { isEmbedded })), ...LIMITS, ...more };
  return { settings, start: () => startAsScript(settings) };
}

/** Undefined for a rival that does not take part. */
export const programOf = ({ rivals, service }: Programs, surface: Surface): StartedService | undefined =>
  isRival(surface) ? rivals[surface] : service;

export const isRival = (surface: Surface): surface is Rival => RIVALS.includes(surface as Rival);
