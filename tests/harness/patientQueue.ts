import type { Services } from '../../server/api/services.ts';
import { findCaller } from '../../server/domain/access/caller.ts';
import { makeFairQueue } from '../../server/runtime/fairQueue.ts';
import { testDatabase } from './service.ts';

const patientQueue = () =>
  makeFairQueue({
    ...{ running: 7, runningPerKey: 4, waiting: 1000, waitingPerKey: 200 },
    refuse: () => new Error('The queue is full.'),
  });

/** The queues of a service, where calls may wait longer than a second: for many calls at once on a busy machine. */
export async function patientQueues(): Promise<Pick<Services, 'queue' | 'findCaller'>> {
  const { db } = await testDatabase();
  const callers = patientQueue();
  const options = { hasReplicas: false, keyMaxDays: undefined };
  return {
    queue: patientQueue(),
    findCaller: (credential, ...call) => callers.run('', () => findCaller(db, credential, ...call, options)),
  };
}
