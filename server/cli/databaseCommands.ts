import type { Command } from './command.ts';

/** Commands on a whole database; the service is stopped meanwhile. */
export const DATABASE_COMMANDS: Record<string, Command> = {
  'database copy': {
    does: 'Copy the embedded database to a PostgreSQL server.',
    explains:
      'Copies all rows of the embedded database in DATA_DIR, with their ids, to the PostgreSQL database of DATABASE_URL, which must be empty: its tables are created. All rows are copied, or none; the embedded database stays as it is. Stop the service first.',
    input: undefined,
    common: [],
    run: async (given) => (await import('./databaseCopy.ts')).copyToServer(given),
  },
};
