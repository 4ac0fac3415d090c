import type { FastifyBaseLogger } from 'fastify';
import type { Database } from './database/connect.ts';
import type { Settings } from './env.ts';
import { openCounters } from './http/counters.ts';
import { makeRateLimit, type RateLimit } from './http/rateLimit.ts';
import type { PaymentProvider } from './payments/provider.ts';
import { testCheckout } from './payments/testCheckout.ts';
import { type Guessing, makeGuessing } from './security/guessing.ts';
import { makeTokens, type Tokens } from './security/tokens.ts';

/** What all requests of a node share. */
export type Services = {
  database: Database;
  tokens: Tokens;
  rateLimit: RateLimit;
  guessing: Guessing;
  payments: PaymentProvider;
  /** The address that people reach the service by, where it is not the one that it listens on. */
  publicUrl: string | undefined;
};

/** Makes them as the settings say; `close` leaves the database open. */
export async function openServices(
  settings: Settings,
  database: Database,
  secret: string,
  log: FastifyBaseLogger,
): Promise<Services & { close: () => void }> {
  const counters = await openCounters(settings.REDIS_URL, log);
  return {
    database,
    tokens: makeTokens([secret, ...settings.JWT_PREVIOUS_SECRETS], settings.TOKEN_LIFETIME_HOURS * 60 * 60),
    rateLimit: makeRateLimit(counters, settings.RATE_LIMIT_PER_MINUTE),
    guessing: makeGuessing(counters.make),
    payments: await choosePayments(settings),
    publicUrl: settings.PUBLIC_URL,
    close: counters.close,
  };
}

async function choosePayments({ STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET }: Settings): Promise<PaymentProvider> {
  if (STRIPE_SECRET_KEY === undefined || STRIPE_WEBHOOK_SECRET === undefined) return testCheckout;
  const { makeStripe } = await import('./payments/stripe.ts');
  return makeStripe({ secretKey: STRIPE_SECRET_KEY, webhookSecret: STRIPE_WEBHOOK_SECRET });
}
