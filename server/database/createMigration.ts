import { writeFile } from 'node:fs/promises';
import { readSettings } from '../runtime/env.ts';
import { connect } from './connect.ts';
import { IN_MEMORY } from './embedded/location.ts';
import { migrate } from './migrate.ts';
import { schemaDifference } from './schemaDifference.ts';

/** For developers: writes the migration that updates the tables to the entities. */
const [, , name = ''] = process.argv;
if (!/^[a-z][a-z0-9_]*$/.test(name)) {
  console.error('Say what the migration does: npm run migration:create -- add_labels');
  process.exit(2);
}

const database = await connect(readSettings({ DATA_DIR: IN_MEMORY }));
await migrate(database);
const statements = await schemaDifference(await database.orm());
await database.close();
if (statements.length === 0) console.log('The entities have not changed.');
else await writeMigration(`Migration${new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)}_${name}`);

async function writeMigration(className: string): Promise<void> {
  const lines = statements.map((statement) => `    this.addSql(\`${statement}\`);`);
  const text = `import { Migration } from '@mikro-orm/migrations';

export class ${className} extends Migration {
  override up(): void {
${lines.join('\n')}
  }
}
`;
  await writeFile(new URL(`migrations/${className}.ts`, import.meta.url), text);
  console.log(`Written: server/database/migrations/${className}.ts. Read it, then npm run format.`);
}
