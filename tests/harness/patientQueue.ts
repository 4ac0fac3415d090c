import { type FairQueue, makeFairQueue } from '../../server/runtime/fairQueue.ts';

/** The queue of a service, whose calls may wait longer than a second: for many calls at once on a busy machine. */
export const patientQueue = (): FairQueue =>
  makeFairQueue({
    running: 7,
    runningPerKey: 4,
    waiting: 1000,
    waitingPerKey: 200,
    refuse: () => new Error('The queue is full.'),
  });
