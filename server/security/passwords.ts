import argon2 from 'argon2';
import { tooManyRequests } from '../errors.ts';

/** OWASP's minimum for argon2id. */
const ARGON2ID = { type: argon2.argon2id, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

export const hashPassword = (password: string) => inTurn(() => argon2.hash(password, ARGON2ID));

/** Whether it is the password; where there is no user to compare with, it takes the same time to say no. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const isRight = await inTurn(() => argon2.verify(hash ?? NOBODYS_HASH, password));
  return hash !== undefined && isRight;
}

/** Made with the same cost as real ones, of a password that nobody knows. */
const NOBODYS_HASH =
  '$argon2id$v=19$m=19456,p=1,t=2$2fVALV5Ubx9pZPVqheh6OA$Tqzf3r3mJFQM2chNzOxxqAg6v4pnYrzBKuJWKUUq/dE';

/** Hashes are costly in memory and time: few are made at once, some wait, the rest are told to come back. */
async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  await enter();
  try {
    return await work();
  } finally {
    leave();
  }
}

const MOST_RUNNING = 2;
const MOST_WAITING = 50;
let running = 0;
const waiting: (() => void)[] = [];

async function enter() {
  if (running < MOST_RUNNING) {
    running++;
    return;
  }
  if (waiting.length >= MOST_WAITING) throw tooManyRequests('Too many sign-ins at once. Try again shortly.', 2);
  await new Promise<void>((admit) => waiting.push(admit));
}

function leave() {
  const next = waiting.shift();
  if (next) next();
  else running--;
}
