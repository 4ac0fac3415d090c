import { parentPort, workerData } from 'node:worker_threads';
import type { Start } from '../../../client/testing/messages.ts';
import { prepareEngine } from '../../database/embedded/engineCode.js';
import { followClock } from './clock.ts';

const { clock, settings } = workerData as Start;
followClock(clock);
prepareEngine();
// Imported after the clock is set, since modules may keep `Date.now`.
const { serveTests } = await import('./service.ts');
if (!parentPort) throw new Error('This file runs only as a worker thread.');
await serveTests(parentPort, settings);
