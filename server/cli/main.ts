import { enableCompileCache } from 'node:module';
import type { Database } from '../database/connect.ts';
import { environment, readSettings } from '../env.ts';
import { isStartFailure } from '../startFailure.ts';

enableCompileCache();

type Command = { does: string; run: (database: Database) => Promise<string> };

const COMMANDS: Record<string, Command> = {
  migrate: {
    does: 'Bring the tables of the database up to date.',
    run: async (database) => {
      const { migrate } = await import('../database/migrate.ts');
      const applied = await migrate(database);
      return applied.length === 0 ? 'The tables are up to date.' : `Applied: ${applied.join(', ')}`;
    },
  },
  demo: {
    does: 'Fill an empty database with the demo data.',
    run: async (database) => {
      const { migrate } = await import('../database/migrate.ts');
      const { fillWithDemoData } = await import('../database/demo.ts');
      await migrate(database);
      return (await fillWithDemoData(database))
        ? 'Filled with the demo data.'
        : 'Left alone: the database has users already.';
    },
  },
};

const HELP = `Usage: npm run deckhand -- COMMAND

${Object.entries(COMMANDS)
  .map(([name, { does }]) => `  ${name.padEnd(10)}${does}`)
  .join('\n')}

The database is the one that the settings name: DATABASE_URL, or the embedded one in DATA_DIR.`;

process.exit(await main(process.argv.slice(2)));

async function main([name, ...others]: string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === 'help') {
    console.log(HELP);
    return 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command || others.length > 0) {
    const complaint = command ? `${name} takes nothing else.` : `There is no command ${name}.`;
    console.error(`${complaint}\n\n${HELP}`);
    return 2;
  }

  try {
    const settings = readSettings(environment());
    const { connect } = await import('../database/connect.ts');
    const database = await connect(settings);
    try {
      console.log(await command.run(database));
      return 0;
    } finally {
      await database.close();
    }
  } catch (error) {
    console.error(isStartFailure(error) ? error.message : error);
    return 1;
  }
}
