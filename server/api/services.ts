import { tooManyRequests } from '../../shared/errors.ts';
import type { Role } from '../../shared/user.ts';
import { failedWork } from '../database/background.ts';
import { type Connections, type Database, laneSizeOf } from '../database/connect.ts';
import { makeReadiness, type Readiness } from '../database/readiness.ts';
import { removedRows } from '../database/removal.ts';
import { openReplicas, type Replicas } from '../database/replicas.ts';
import { type Credential, findCaller } from '../domain/access/caller.ts';
import { makeRememberedCallers, type RememberedCallers } from '../domain/access/confirmation.ts';
import type { AccountCaller, NodeServices } from '../domain/access/context.ts';
import { endedKeyError } from '../domain/access/endedKey.ts';
import { recordUse } from '../domain/access/keyUse.ts';
import { erasuresFileOf } from '../domain/account/erasureFile.ts';
import { makeEventHub } from '../domain/event/hub.ts';
import { deliveryCounts } from '../domain/event/webhookRecord.ts';
import { mailCounts } from '../domain/mail/mailQueue.ts';
import { runningTemplates } from '../domain/template/template.ts';
import { makeAttemptLimit } from '../limits/attemptLimit.ts';
import { type ChangeChannel, makeChangeSignal } from '../limits/changeSignal.ts';
import { type MakeCounter, openCounters } from '../limits/counters.ts';
import { type KeyHolders, makeKeyHolders } from '../limits/keyHolders.ts';
import { type KeyUse, makeKeyUse } from '../limits/keyUse.ts';
import { makeMailLimit } from '../limits/mailLimit.ts';
import { makeRateLimit, type RateLimit } from '../limits/rateLimit.ts';
import { makeUnsentResponses, type UnsentElsewhere, type UnsentResponses } from '../limits/unsentResponses.ts';
import { choosePayments } from '../payments/choice.ts';
import { hasDemoData, type Settings } from '../runtime/env.ts';
import { type FairQueue, makeFairQueue, type QueueLoad } from '../runtime/fairQueue.ts';
import { isForThisMachine, isLoopback } from '../runtime/host.ts';
import type { Log } from '../runtime/log.ts';
import { makeGuardedFetch } from '../security/guardedFetch.ts';
import { makeIdentityProviders } from '../security/identityProvider.ts';
import { makeKeySets } from '../security/keySets.ts';
import { passwordLoad, sharePasswordQueue } from '../security/passwords.ts';
import { makeSecretBox } from '../security/secretBox.ts';
import { makeTokens } from '../security/tokens.ts';

/** The services that all requests of a node share. */
export type Services = NodeServices & {
  database: Database;
  readiness: Readiness;
  /** Undefined without replicas. */
  replicas: Replicas | undefined;
  rateLimit: RateLimit;
  /** Has a separate queue: calls that wait for a lock must not block the authentication of others. */
  findCaller: (
    credential: Credential,
    chosenProjectId: number | undefined,
    neededRole: Role | undefined,
  ) => Promise<AccountCaller | undefined>;
  /** The 401 for the holder of a secret that was valid once; undefined for any other. */
  findEndedKey: (keyHash: string) => Promise<Error | undefined>;
  keyHolders: KeyHolders;
  rememberedCallers: RememberedCallers;
  keyUse: KeyUse;
  unsentResponses: UnsentResponses;
  /** The public address, if it differs from the one that it listens on. */
  publicUrl: string | undefined;
  /** Whether the passwords of demo users are shown also to who reached this machine by another name. */
  showsDemoUsersToAll: boolean;
  metricsAccess: MetricsAccess;
  load: () => Load;
  /** Whether the database was restored, and waits for its erasures: nobody is served. */
  erasures: { isDue: boolean; file?: string | undefined };
  /** Whether the whole node is stopping, not one worker alone: it is no longer ready. */
  isNodeStopping: () => boolean;
  /** Undefined in a single process. */
  siblings: Siblings | undefined;
};

/** What a worker shares with the other workers of its node. */
export type Siblings = {
  makeCounter: MakeCounter;
  passwords: FairQueue;
  unsentElsewhere: UnsentElsewhere;
  changes: ChangeChannel;
  /** The metrics of all workers, living and dead, and of their parent, for `sumMetrics`; takes how to read those of this one. */
  collectMetrics: (own: () => Promise<string>) => () => Promise<string[]>;
};

/** What the node is doing at the moment, for the metrics. */
export type Load = {
  queues: Record<'calls' | 'callers' | 'passwords', QueueLoad>;
  connections: Connections | undefined;
  templateRuns: number;
  /** Who follow events. */
  followers: number;
  /** By table, since the start. */
  removedRows: ReadonlyMap<string, number>;
  failedRemovals: ReadonlyMap<string, number>;
  /** Attempts to deliver events to webhooks, by status, since the start. */
  webhookDeliveries: ReadonlyMap<string, number>;
  /** Attempts to send mails, by how they ended, since the start. */
  mails: ReadonlyMap<string, number>;
  /** Undefined without Redis. */
  isRedisReachable: boolean | undefined;
};

/** Of one node; its workers share them. */
const MOST_FOLLOWERS = 1000;

/** Metrics need the token; without one configured, they are open only for an embedded database on loopback. */
export type MetricsAccess = { token: string | undefined; isOpen: boolean };

/** Creates the services from the settings; `close` does not close the database. */
export async function openServices(
  settings: Settings,
  database: Database,
  secret: string,
  log: Log,
  /** The generated secret of `DATA_DIR`: second factors may still be encrypted with it. */
  storedSecret?: string,
  siblings?: Siblings,
): Promise<Services & { beginToStop: (isAlone: boolean) => void; close: () => Promise<void> }> {
  let isStopping = false;
  let isNodeStopping = false;
  const { API_KEYS_MAX_DAYS: keyMaxDays } = settings;
  const queue = makeQueue(settings);
  const callerQueue = fairQueueOf(settings.DATABASE_POOL_SIZE);
  const counters = await openCounters(settings.REDIS_URL, log, siblings?.makeCounter);
  const eventHub = makeEventHub({
    db: database.db,
    log,
    keyMaxDays,
    signal: makeChangeSignal(settings.REDIS_URL, counters.publish, log, siblings?.changes),
    mostFollowers: Math.ceil(MOST_FOLLOWERS / settings.WORKERS),
  });
  if (siblings) sharePasswordQueue(siblings.passwords);
  const replicas = await openReplicas(settings, database, log);
  const secrets: [string, ...string[]] = [secret, ...settings.JWT_PREVIOUS_SECRETS];
  return {
    database,
    bulkPace: database.bulkPace,
    hasSearchIndex: database.hasSearchIndex,
    readiness: makeReadiness(database),
    replicas,
    tokens: makeTokens(secrets, settings.TOKEN_LIFETIME_HOURS * 60 * 60),
    rateLimit: makeRateLimit(counters, settings.RATE_LIMIT_PER_MINUTE),
    attemptLimit: makeAttemptLimit(counters.make),
    mailLimit: makeMailLimit(counters.make),
    exchangeLimit: makeAttemptLimit(counters.make, 'exchange'),
    keySets: makeKeySets(makeGuardedFetch({ allowedHosts: settings.IDENTITY_ALLOWED_HOSTS })),
    secretBox: makeSecretBox(storedSecret === undefined ? secrets : [...secrets, storedSecret]),
    findCaller: (credential, ...call) =>
      callerQueue.run(queueKey(credential), () =>
        findCaller(database.db, credential, ...call, { hasReplicas: replicas !== undefined, keyMaxDays }),
      ),
    findEndedKey: (keyHash) =>
      callerQueue.run(queueKey({ keyHash }), () => endedKeyError(database.db, keyHash, keyMaxDays)),
    keyHolders: makeKeyHolders(),
    rememberedCallers: makeRememberedCallers(),
    eventsKeptDays: settings.EVENTS_KEPT_DAYS,
    keyMaxDays,
    webhookAllowedHosts: settings.WEBHOOK_ALLOWED_HOSTS,
    identityAllowedHosts: settings.IDENTITY_ALLOWED_HOSTS,
    eventHub,
    keyUse: makeKeyUse((ids) => recordUse(database.db, ids), log),
    queue,
    unsentResponses: makeUnsentResponses(undefined, siblings?.unsentElsewhere),
    sendsMail: settings.SMTP_URL !== undefined || showsMails(settings, database),
    identityProviders: makeIdentityProviders(settings.SSO_ISSUERS, log),
    payments: await choosePayments(settings),
    publicUrl: settings.PUBLIC_URL,
    showsDemoUsersToAll: settings.DEMO_DATA === true,
    metricsAccess: {
      token: settings.METRICS_TOKEN,
      isOpen: !settings.METRICS_TOKEN && database.isEmbedded && isForThisMachine(settings),
    },
    load: () => ({
      queues: { calls: queue.load(), callers: callerQueue.load(), passwords: passwordLoad() },
      connections: database.connections(),
      templateRuns: runningTemplates(),
      followers: eventHub.countFollowers(),
      removedRows,
      failedRemovals: failedWork,
      webhookDeliveries: deliveryCounts,
      mails: mailCounts,
      isRedisReachable: counters.isShared(),
    }),
    erasures: { isDue: false, file: erasuresFileOf(settings) },
    isStopping: () => isStopping,
    isNodeStopping: () => isNodeStopping,
    siblings,
    beginToStop: (isAlone) => {
      isStopping = true;
      isNodeStopping = !isAlone;
    },
    close: async () => {
      eventHub.close();
      counters.close();
      await replicas?.close();
    },
  };
}

/** On the demo of one machine, where the terminal shows mails instead of sending them. */
export const showsMails = (settings: Settings, { isEmbedded }: Pick<Database, 'isEmbedded'>) =>
  !settings.SMTP_URL && isEmbedded && isLoopback(settings.HOST) && hasDemoData(settings);

const queueKey = (sent: Credential) => ('keyHash' in sent ? `key:${sent.keyHash}` : `session:${sent.sessionId}`);

/** Leaves connections for finding callers, which use the lane if there is one, and for signing in and health checks. */
const makeQueue = ({ DATABASE_POOL_SIZE: connections }: Settings) =>
  fairQueueOf(Math.max(2, connections - Math.max(2, laneSizeOf(connections) + 1)));

/** One key may use half of the slots, and keys take turns. */
const fairQueueOf = (running: number) =>
  makeFairQueue({
    running,
    runningPerKey: Math.ceil(running / 2),
    waiting: 1000,
    waitingPerKey: 200,
    // With the timeouts for a connection and its first response, 5 seconds in total while the database does not respond.
    longestWaitMilliseconds: 1000,
    refuse: (isOwn) =>
      isOwn
        ? tooManyRequests('You have too many calls at once. Wait for their answers.', 1, 'too_many_at_once')
        : tooManyRequests('The service is busy. Try again shortly.', 1, 'service_busy'),
  });
