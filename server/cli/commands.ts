import { randomBytes } from 'node:crypto';
import { callTRPCProcedure } from '@trpc/server';
import type { z } from 'zod';
import type { Context } from '../context.ts';
import type { Database } from '../database/connect.ts';
import type { Settings } from '../env.ts';
import { type Procedure, procedures } from '../procedures.ts';
import { appRouter } from '../routers/app.ts';

export type Command = {
  does: string;
  input: z.ZodType | undefined;
  run: (database: Database, settings: Settings, input: unknown) => Promise<unknown>;
  /** Formats the result for people, if a table is not suitable. */
  // biome-ignore lint/suspicious/noExplicitAny: the result of `run` of the same command
  tell?: (result: any) => string;
};

const ON_THE_DATABASE: Record<string, Command> = {
  migrate: {
    does: 'Run pending migrations.',
    input: undefined,
    run: async (database) => {
      const { migrate } = await import('../database/migrate.ts');
      return { applied: await migrate(database) };
    },
    tell: ({ applied }) => (applied.length === 0 ? 'The tables are up to date.' : `Applied: ${applied.join(', ')}`),
  },
  demo: {
    does: 'Fill an empty database with the demo data.',
    input: undefined,
    run: async (database) => {
      const { migrate } = await import('../database/migrate.ts');
      const { fillWithDemoData } = await import('../database/demo.ts');
      await migrate(database);
      return { filled: await fillWithDemoData(database) };
    },
    tell: ({ filled }) => (filled ? 'Filled with the demo data.' : 'Nothing changed: the database already has users.'),
  },
};

/** Every procedure but signing in is a command with the same input and checks: `users.signOut` is `users sign-out`. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ...Object.entries(ON_THE_DATABASE),
  ...procedures.flatMap((procedure): [string, Command][] =>
    procedure.name === 'auth.authenticate' ? [] : [[commandName(procedure.name), commandOf(procedure)]],
  ),
]);

export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function commandName(procedure: string): string {
  return kebab(procedure).replace('.', ' ');
}

function commandOf({ name, type, input, summary }: Procedure): Command {
  const run = async (database: Database, settings: Settings, given: unknown) =>
    callTRPCProcedure({
      router: appRouter,
      path: name,
      type,
      getRawInput: async () => given,
      ctx: await operatorContext(database, settings),
      signal: undefined,
      batchIndex: 0,
    });
  return { does: `${summary}.`, input, run };
}

/** Commands run as a superadmin without an account. */
async function operatorContext(database: Database, settings: Settings): Promise<Context> {
  const { pino } = await import('pino');
  const { openServices } = await import('../services.ts');
  const log = pino({ level: 'silent' });
  const secret = randomBytes(48).toString('base64url');
  return {
    ...(await openServices({ ...settings, REDIS_URL: undefined }, database, secret, log)),
    ...database,
    log,
    publicUrl: settings.PUBLIC_URL ?? '',
    address: 'command line',
    caller: {
      id: null,
      sessionId: '',
      superadmin: true,
      superadmin_billing: true,
      project: undefined,
      isProjectChosen: false,
      highestRole: 'owner',
    },
    answerBudget: undefined,
    callsAllowed: 1,
    retryAfterSeconds: 0,
  };
}
