import { MikroORM } from '@mikro-orm/core';
import options from '../../mikro-orm.config.ts';

/** For developers: writes the migration that brings the tables to what the entities now say. */
const orm = await MikroORM.init(options);
const { fileName } = await orm.migrator.create();
console.log(fileName ? `Written: server/database/migrations/${fileName}` : 'The entities have not changed.');
await orm.close(true);
