import type { FastifyBaseLogger } from 'fastify';
import type { EntityManager } from './database/query.ts';
import type { Caller } from './domain/caller.ts';
import type { PaymentProvider } from './payments/provider.ts';
import type { Guessing } from './security/guessing.ts';
import type { Tokens } from './security/tokens.ts';

/** What a procedure is given: the database, the tools that it needs, and who is calling. */
export type Context = {
  em: EntityManager;
  /** On the embedded database a long statement keeps everybody waiting. */
  isEmbedded: boolean;
  log: FastifyBaseLogger;
  tokens: Tokens;
  guessing: Guessing;
  payments: PaymentProvider;
  /** Where people reach the service. */
  publicUrl: string;
  /** Where the call comes from. */
  address: string;
  /** Absent while there is no genuine token. */
  caller: Caller | undefined;
  /** How many calls of this request the rate limit still allows. */
  callsAllowed: number;
  retryAfterSeconds: number;
};

/** What is enough for those functions of the domain that the command line calls as well. */
export type Provisioning = Pick<Context, 'em'>;
