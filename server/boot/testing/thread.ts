import { parentPort, workerData } from 'node:worker_threads';
import type { Start } from '../../../client/testing/messages.ts';
import { prepareEngine } from '../../database/embedded/engineCode.js';
import { followClock } from './clock.ts';

const { clock, settings, sandbox } = workerData as Start;
followClock(clock);
prepareEngine();
// Imported after the clock is set, since modules may keep `Date.now`.
if (!parentPort) throw new Error('This file runs only as a worker thread.');
if (sandbox) await (await import('./sandbox.ts')).serveSandbox(parentPort, settings, sandbox);
else await (await import('./service.ts')).serveTests(parentPort, settings);
