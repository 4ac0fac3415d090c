import { isIPv6 } from 'node:net';
import { tooManyRequests } from '../../shared/errors.ts';
import { networkOf } from '../runtime/address.ts';
import type { MakeCounter } from './counters.ts';

/** Counts mails that somebody wants to have sent, in an hour. Each of them throws a 429 beyond its limit. */
export type MailLimit = {
  /** For mails that anybody can ask for. The count is that of their network, so nobody uses up the limit of others. */
  countOfNetwork: (address: string) => Promise<void>;
  /** For mails that a user has sent to any address. An invitation can be withdrawn and made again, so its row does not count them. */
  countOfUser: (userId: number, email: string) => Promise<void>;
};

const WINDOW_SECONDS = 60 * 60;

/** IPv6 customers get whole networks, as in `attemptLimit.ts`. */
const OF_NETWORK = [
  { bits: 64, most: 100 },
  { bits: 56, most: 300 },
  { bits: 48, most: 1000 },
] as const;
const OF_USER = 300;
const OF_USER_TO_ADDRESS = 20;

export function makeMailLimit(makeCounter: MakeCounter): MailLimit {
  const counterOf = (name: string, most: number) => {
    const counter = makeCounter(`mails-${name}`, most, WINDOW_SECONDS);
    return async (key: string) => {
      const { consumedPoints, msBeforeNext } = await counter.penalty(key);
      if (consumedPoints <= most) return;
      const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000));
      throw tooManyRequests('Too many mails were asked for. Try again later.', seconds, 'too_many_mails');
    };
  };
  const networks = OF_NETWORK.map(({ bits, most }) => ({ bits, count: counterOf(`network-${bits}`, most) }));
  const [ofUser, toAddress] = [counterOf('user', OF_USER), counterOf('user-address', OF_USER_TO_ADDRESS)];
  return {
    countOfNetwork: async (address) => {
      for (const { bits, count } of networks) if (bits === 64 || isIPv6(address)) await count(networkOf(address, bits));
    },
    countOfUser: async (userId, email) => {
      await toAddress(`${userId} ${email.toLowerCase()}`);
      await ofUser(String(userId));
    },
  };
}
