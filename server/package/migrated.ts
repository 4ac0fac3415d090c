import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIGRATED } from '../database/embedded/location.ts';
import { makeMigrated } from '../database/snapshot.ts';

/** For the image: a migrated database where a first start looks for it. */
const stage = await mkdtemp(join(tmpdir(), 'deckhand-'));
await makeMigrated(stage, MIGRATED);
await rm(stage, { recursive: true });
