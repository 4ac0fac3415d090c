import { randomBytes } from 'node:crypto';
import superjson from 'superjson';
import { notFound, toFailure } from '../../shared/errors.ts';
import { findProcedure } from '../api/procedures.ts';
import { openServices, type Services } from '../api/services.ts';
import { answer, type Exchange } from '../call/answer.ts';
import { connect, type Database, refuseWithoutDatabase } from '../database/connect.ts';
import { isInUse, stopFirst } from '../database/embedded/dataDirectory.ts';
import { adoptDatabase } from '../database/incarnation.ts';
import { replicasForCommands } from '../database/replicas.ts';
import { findCallerByEmail, findOperator } from '../domain/access/caller.ts';
import { writeSuperjson } from '../http/rpcOutput.ts';
import { readSettings, type Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { readOrCreateSecret } from '../security/storedSecret.ts';
import type { Call, ReadEnvironment, Where } from './command.ts';
import { urlOf } from './serviceUrl.ts';

type Opened<Result> = (database: Database, settings: Settings, secret: string | undefined) => Promise<Result>;

/** Opens the database of the settings. Most commands need no secret, so that it may be missing. */
export async function withDatabase<Result>(
  environment: ReadEnvironment,
  work: Opened<Result>,
  refuse: (settings: Settings) => (error: unknown) => never | Promise<never> = ({ DATA_DIR }) => stopFirst(DATA_DIR),
): Promise<Result> {
  const { JWT_SECRET, ...others } = environment();
  const settings = readSettings({ ...others, JWT_SECRET: JWT_SECRET || MISSING_SECRET });
  const database = await connect(settings).catch(refuse(settings));
  try {
    const stored = () => (database.isEmbedded ? readOrCreateSecret(settings.DATA_DIR) : undefined);
    return await work(database, settings, JWT_SECRET || (await stored()));
  } finally {
    await database.close();
  }
}

/** Opens a database that exists already. Commands that use this say which database it is, and never create one. */
export function withExistingDatabase<Result>(
  environment: ReadEnvironment,
  work: (database: Database, place: string) => Promise<Result>,
): Promise<Result> {
  const { DATABASE_URL, DATA_DIR } = readSettings({ ...environment(), JWT_SECRET: MISSING_SECRET });
  if (DATABASE_URL === undefined) refuseWithoutDatabase(DATA_DIR);
  // Without the password, and with all hosts if there are several.
  const [, server] = /^\w+:\/\/(?:[^@/]*@)?([^?]*)/.exec(DATABASE_URL ?? '') ?? [];
  const place = DATABASE_URL === undefined ? `DATA_DIR ${DATA_DIR}` : `DATABASE_URL at ${server}`;
  return withDatabase(environment, (database) => work(database, place));
}

/** The process that uses an embedded database is usually the service. */
const callInstead =
  (settings: Settings) =>
  async (error: unknown): Promise<never> => {
    if (!isInUse(error)) throw error;
    const url = await urlOf(settings);
    throw startFailure(
      `DATA_DIR: ${settings.DATA_DIR} is in use by another process. If that is the service, act on it with --url ${url} (sign in first: \
npx deckhand login --url ${url} --email EMAIL), or stop it.`,
      error,
    );
  };

const MISSING_SECRET = 'x'.repeat(32);

/** Calls procedures as the operator, a superadmin without an account, or as the user of `--as`. */
export function callOnDatabase<Result>(
  { chosen, environment }: Where,
  calls: (call: Call) => Promise<Result>,
): Promise<Result> {
  const work: Opened<Result> = async (database, settings, secret) => {
    // Before anything is written to a restored database, which no node has used yet.
    await adoptDatabase(database.db).catch(ignoreMissingTables);
    const exchange: Exchange = {
      services: await servicesOf(database, settings, secret),
      token: '',
      projectId: chosen.project,
      origin: {
        surface: 'command_line',
        requestId: null,
        address: 'command line',
        serviceUrl: settings.PUBLIC_URL ?? '',
      },
      log: SILENT,
      leaving: undefined,
      calls: 1,
      isPlain: false,
      called: [],
      neededRole: undefined,
      reasons: [],
      caller: await callerOf(database, chosen),
    };
    return calls(async (path, input) => {
      const reply = await answer(exchange, { procedure: findProcedure(path)!, index: 0, readInput: () => input });
      if ('data' in reply) return toClientResult(reply.data);
      throw (await missingProject(reply.error, database)) ?? reply.error;
    });
  };
  return withDatabase(environment, work, callInstead);
}

/** The call itself says how to create them. */
function ignoreMissingTables(error: { code?: string }): void {
  if (!UNDEFINED.includes(error.code ?? '')) throw error;
}
/** A table or a column. */
const UNDEFINED = ['42P01', '42703'];

/** If there is no project at all, says how to create one. */
async function missingProject(error: unknown, { db }: Database): Promise<Error | undefined> {
  if (toFailure(error).reason !== 'no_project_access') return undefined;
  const project = await db.selectFrom('projects').select('id').limit(1).executeTakeFirst();
  if (project) return undefined;
  return startFailure(
    'There is no project yet. Create a platform and a project first: npx deckhand platforms create --name NAME, then npx deckhand projects create --platform-id ID --name NAME.',
    error,
  );
}

/** The result as an RPC client receives it. */
const toClientResult = (result: unknown) => superjson.deserialize(JSON.parse(writeSuperjson(result)));

async function callerOf({ db }: Database, { as, project }: Where['chosen']) {
  if (as === undefined) return findOperator(db, project);
  const caller = await findCallerByEmail(db, as, project);
  if (!caller) throw notFound(`No active user has the e-mail address ${as}.`, 'not_registered');
  return caller;
}

const ignore = () => undefined;
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

async function servicesOf(database: Database, settings: Settings, secret: string | undefined): Promise<Services> {
  const used = secret ?? randomBytes(48).toString('base64url');
  const onlyPrimary = { ...settings, REDIS_URL: undefined, DATABASE_REPLICA_URLS: [] };
  const services = await openServices(onlyPrimary, database, used, SILENT);
  const replicas = replicasForCommands(settings, database);
  return { ...services, ...(secret === undefined && withoutSecret(services)), replicas };
}

/** Without the service's secret, commands can't sign or encrypt for it. */
function withoutSecret({ tokens }: Services): Pick<Services, 'tokens' | 'secretBox'> {
  const fail = () => {
    throw startFailure('JWT_SECRET: must be set to that of the service for this command.');
  };
  return { tokens: { ...tokens, sign: fail }, secretBox: { seal: fail, open: fail, hashes: fail, prefix: '' } };
}
