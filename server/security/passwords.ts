import { tooManyRequests } from '../../shared/errors.ts';
import { networkOf } from '../runtime/address.ts';
import { type FairQueue, makeFairQueue } from '../runtime/fairQueue.ts';

/** OWASP's minimum for argon2id, which is the default type. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Loaded with the first password. */
const loadArgon2 = async () => (await import('argon2')).default;

export const hashPassword = (password: string, address: string) =>
  inTurn(address, async () => (await loadArgon2()).hash(password, COST));

/** Verifies a password; takes the same time if there is no such user. Networks that failed lately wait for others. */
export async function isPassword(
  password: string,
  hash: string | undefined,
  address: string,
  { hasFailed = false } = {},
): Promise<boolean> {
  const verify = async () => (await loadArgon2()).verify(hash ?? NOBODYS_HASH, password);
  const isRight = await inTurn(address, verify, { goesLast: hasFailed });
  return hash !== undefined && isRight;
}

/** The hash of an unknown password, with the same cost as real ones. */
const NOBODYS_HASH =
  '$argon2id$v=19$m=19456,p=1,t=2$2fVALV5Ubx9pZPVqheh6OA$Tqzf3r3mJFQM2chNzOxxqAg6v4pnYrzBKuJWKUUq/dE';

/** Hashing is expensive: few run at once, some wait, the rest get a 429. One per worker, and at least two. */
export const makePasswordQueue = (workers: number) =>
  makeFairQueue({
    running: Math.max(2, workers),
    runningPerKey: Math.max(2, workers),
    waiting: 50,
    waitingPerKey: 10,
    // Reached only by networks that go last.
    longestWaitMilliseconds: 30_000,
    refuse: tooManySignIns,
  });

export const tooManySignIns = () => tooManyRequests('Too many sign-ins at once. Try again shortly.', 2, 'service_busy');

let queue = makePasswordQueue(1);

/** For workers: all of them share one queue. */
export function sharePasswordQueue(shared: FairQueue): void {
  queue = shared;
}

/** How many passwords are being hashed or checked, and how many wait. */
export const passwordLoad = () => queue.load();

/** Networks take turns, so that a flood from one does not block others. By /48 for IPv6, which one customer often has. */
const inTurn = <Result>(address: string, work: () => Promise<Result>, { goesLast = false } = {}) =>
  queue.run(networkOf(address, 48), work, { goesLast });
