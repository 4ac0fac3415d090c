import { findProcedure } from '../../server/api/procedures.ts';
import { openServices, type Services } from '../../server/api/services.ts';
import { admit, answer, type Exchange } from '../../server/call/answer.ts';
import { startBackground } from '../../server/database/background.ts';
import { connect, type Database } from '../../server/database/connect.ts';
import { levelOf } from '../../server/database/level.ts';
import { migrate } from '../../server/database/migrate.ts';
import { removalWork } from '../../server/database/removal.ts';
import { startAccountWork } from '../../server/domain/account/accountWork.ts';
import { CLEARING, RECENT_CLEARING } from '../../server/domain/board/deletion.ts';
import { startWebhooks } from '../../server/domain/event/webhookWork.ts';
import { startMails } from '../../server/domain/mail/mailWork.ts';
import { deletedRowRemovals } from '../../server/domain/removal/deletedRows.ts';
import { startRollouts } from '../../server/domain/template/rolloutWork.ts';
import { readSettings, type Settings } from '../../server/runtime/env.ts';
import { withValues } from '../../server/runtime/jsonText.ts';
import type { Log } from '../../server/runtime/log.ts';
import type { Outgoing } from '../../server/security/outgoing.ts';
import type { SendMessage } from '../../server/security/smtp.ts';
import { nodeSettings } from '../faults/world.ts';
import { SETUP } from './gate.ts';
import { type Life, makeLife, tasks } from './time.ts';

/** How calls to receivers and mail servers go. */
export type Outside = { post: (life: Life) => Outgoing['post']; send: (life: Life) => SendMessage };

/** `removes`: whether it also removes rows that were deleted. */
export type Start = Outside & { removes: boolean };

/** A process of the service without its HTTP: it has its own connections, services and work. */
export type Node = {
  /** Starts its work, as `server/boot/work.ts` does. */
  start: (how: Start) => Life;
  call: (life: Life, call: NodeCall) => Promise<unknown>;
};

export type NodeCall = { id: string; task: string; token: string; path: string; input: unknown; key?: string };

const ignore = () => undefined;
const LOG: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Only the removals of deleted rows: a seed has no other rows that are old enough to be removed. */
const REMOVALS = deletedRowRemovals(30);

/** Too few connections for a lane: each statement has its own. */
const settingsFor = (DATABASE_URL: string): Settings =>
  readSettings({ ...nodeSettings({ DATABASE_URL }), DATABASE_POOL_SIZE: '7' });

/** The database that the nodes share, for tests to fill and to look at. */
export async function openShared(url: string): Promise<Database> {
  const database = await connect(settingsFor(url));
  await migrate(database);
  return database;
}

export async function openNode(name: string, url: string): Promise<Node> {
  const settings = settingsFor(url);
  const database = await tasks.run({ life: makeLife(name, 0), name: SETUP }, () => connect(settings));
  const services = { ...(await openServices(settings, database, settings.JWT_SECRET!, LOG)), sendsMail: true };
  // Cached, so that all seeds start the same.
  await levelOf(database.db);
  let wakes: (() => void)[] = [];
  services.eventHub.onChange(() => {
    for (const wake of wakes) wake();
  });
  let count = 0;
  return {
    start: (how) => {
      const life = makeLife(name, ++count);
      wakes = startWork(services, life, how);
      return life;
    },
    call: (life, call) => Promise.race([life.died, tasks.run({ life, name: call.task }, () => run(services, call))]),
  };
}

function startWork({ database, secretBox, keyMaxDays }: Services, life: Life, how: Start) {
  const { db } = database;
  const inTask = <Result>(name: string, work: () => Result): Result => tasks.run({ life, name }, work);
  const works = [CLEARING, ...REMOVALS.map(removalWork)];
  if (how.removes) inTask('removal', () => startBackground(database, works, LOG));
  inTask('clearing', () => startBackground(database, [RECENT_CLEARING], LOG, 10_000));
  const outgoing = { post: how.post(life), close: ignore };
  const rest = { services: { keyMaxDays }, secretBox, holder: life.holder, random: () => 0 };
  const starts = {
    webhooks: () => startWebhooks({ db, log: LOG, outgoing, ...rest }),
    rollouts: () => startRollouts(database, LOG),
    mails: () => startMails({ db, log: LOG, base: 'https://boards.example.com', send: how.send(life) }),
    exports: () => startAccountWork({ db, log: LOG, file: undefined, onDue: ignore }),
  };
  return Object.entries(starts).map(([name, start]) => {
    const { wake } = inTask(name, start);
    return () => inTask(name, wake);
  });
}

async function run(services: Services, { id, token, path, input, key }: NodeCall): Promise<unknown> {
  const procedure = findProcedure(path)!;
  const exchange: Exchange = {
    services,
    token,
    projectId: undefined,
    origin: { surface: 'rpc', requestId: id, address: '127.0.0.1', serviceUrl: 'https://boards.example.com' },
    log: LOG,
    leaving: undefined,
    calls: 1,
    isPlain: key === undefined,
    called: [procedure],
    neededRole: undefined,
    reasons: [],
  };
  try {
    await admit(exchange);
    const reply = await answer(exchange, { procedure, index: 0, readInput: () => input, key });
    if ('data' in reply) return { data: withValues(reply.data), isReplayed: reply.isReplayed };
    throw reply.error;
  } finally {
    exchange.unsent?.release();
  }
}
