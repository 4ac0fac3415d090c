import type { Caller } from './context.ts';
import type { Database } from './database/connect.ts';
import { findCaller } from './domain/caller.ts';
import type { Settings } from './env.ts';
import { tooManyRequests } from './errors.ts';
import { isLoopback } from './host.ts';
import { openCounters } from './limits/counters.ts';
import { type FairQueue, makeFairQueue } from './limits/fairQueue.ts';
import { type Guessing, makeGuessing } from './limits/guessing.ts';
import { makeRateLimit, type RateLimit } from './limits/rateLimit.ts';
import { makeUnsentAnswers, type UnsentAnswers } from './limits/unsentAnswers.ts';
import type { Log } from './log.ts';
import type { PaymentProvider } from './payments/provider.ts';
import { testCheckout } from './payments/testCheckout.ts';
import { makeSecretBox, type SecretBox } from './security/secretBox.ts';
import { type Claims, makeTokens, type Tokens } from './security/tokens.ts';

/** What all requests of a node share. */
export type Services = {
  database: Database;
  tokens: Tokens;
  rateLimit: RateLimit;
  guessing: Guessing;
  /** Waits in a queue of its own: a call that waits for a lock must not keep others from being found. */
  findCaller: (claims: Claims, chosenProjectId: number | undefined) => Promise<Caller | undefined>;
  queue: FairQueue;
  unsentAnswers: UnsentAnswers;
  secretBox: SecretBox;
  /** Absent where payments are not set up. */
  payments: PaymentProvider | undefined;
  /** The address that people reach the service by, where it is not the one that it listens on. */
  publicUrl: string | undefined;
  metricsAccess: MetricsAccess;
  /** Whether the node is about to end: it is not ready any more, and long work stops between two steps. */
  isStopping: () => boolean;
};

/** Who may read the metrics: whoever sends the token; without a token, anyone while the service only listens on loopback. */
export type MetricsAccess = { token: string | undefined; isOpen: boolean };

/** Makes them as the settings say; `close` leaves the database open. */
export async function openServices(
  settings: Settings,
  database: Database,
  secret: string,
  log: Log,
  /** Second factors may still be encrypted with it. */
  keptSecret?: string,
): Promise<Services & { beginToStop: () => void; close: () => void }> {
  let isStopping = false;
  const callerQueue = fairQueueOf(settings.DATABASE_POOL_SIZE);
  const counters = await openCounters(settings.REDIS_URL, log);
  const secrets: [string, ...string[]] = [secret, ...settings.JWT_PREVIOUS_SECRETS];
  return {
    database,
    tokens: makeTokens(secrets, settings.TOKEN_LIFETIME_HOURS * 60 * 60),
    rateLimit: makeRateLimit(counters, settings.RATE_LIMIT_PER_MINUTE),
    guessing: makeGuessing(counters.make),
    secretBox: makeSecretBox(keptSecret === undefined ? secrets : [...secrets, keptSecret]),
    findCaller: (claims, chosenProjectId) =>
      callerQueue.run(`session:${claims.sessionId}`, () => findCaller(database.db, claims, chosenProjectId)),
    queue: makeQueue(settings),
    unsentAnswers: makeUnsentAnswers(),
    payments: await choosePayments(settings),
    publicUrl: settings.PUBLIC_URL,
    metricsAccess: {
      token: settings.METRICS_TOKEN,
      isOpen: !settings.METRICS_TOKEN && database.isEmbedded && isLoopback(settings.HOST),
    },
    isStopping: () => isStopping,
    beginToStop: () => {
      isStopping = true;
    },
    close: counters.close,
  };
}

/** Two connections are left for those who are still to be found, for signing in and for health. */
const makeQueue = ({ DATABASE_POOL_SIZE }: Settings) => fairQueueOf(Math.max(2, DATABASE_POOL_SIZE - 2));

/** One key gets half of what runs at once, and keys take turns. */
const fairQueueOf = (running: number) =>
  makeFairQueue({
    running,
    runningPerKey: Math.ceil(running / 2),
    waiting: 1000,
    waitingPerKey: 200,
    // With the waits for a connection and for its first answer, 5 seconds in all while the database is silent.
    longestWaitMilliseconds: 1000,
    refuse: () => tooManyRequests('The service is busy. Try again shortly.', 1),
  });

async function choosePayments(settings: Settings): Promise<PaymentProvider | undefined> {
  const { STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET, TEST_CHECKOUT, DATABASE_URL } = settings;
  if (STRIPE_SECRET_KEY === undefined || STRIPE_WEBHOOK_SECRET === undefined) {
    // Forgotten keys must not give plans away: on a server database the test checkout is asked for.
    return (TEST_CHECKOUT ?? DATABASE_URL === undefined) ? testCheckout : undefined;
  }
  const { makeStripe } = await import('./payments/stripe.ts');
  return makeStripe({ secretKey: STRIPE_SECRET_KEY, webhookSecret: STRIPE_WEBHOOK_SECRET });
}
