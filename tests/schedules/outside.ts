import { setTimeout as pause } from 'node:timers/promises';
import { MailFailure } from '../../server/security/smtp.ts';
import type { Random } from '../harness/random.ts';
import { callOutside } from './gate.ts';
import type { Outside } from './nodes.ts';
import type { Schedule } from './schedule.ts';
import { type Life, virtualNow } from './time.ts';

/** What receivers and the mail server got: by their address, the ids in order. */
export type Received = Map<string, Map<string, Taken>>;

/** Who brought it first, and when that call began: a webhook that is changed meanwhile gets the event again. */
type Taken = { life: Life; at: number };

export const MAIL_SERVER = 'the mail server';

/** Delays of receivers, all below the service's timeout of 15 seconds. */
const SLOWNESS_MILLISECONDS = [[10], [10, 500], [10, 10, 4000], [10, 10, 13_000], [10, 13_000]];

const MOST_FAILURES = 2;

/** A fault this long ago can explain a lost lease (10 s, renewed every 3 s). */
const EXCUSE_MILLISECONDS = 15_000;

/** Receivers of webhooks and a mail server: slow or failing as the seed says, and attentive to doubled calls. */
export function makeOutside(random: Random, schedule: () => Schedule): { outside: Outside; received: Received } {
  const received: Received = new Map();
  const visitors = new Map<string, Set<Life>>();
  const slowness = random.pick(SLOWNESS_MILLISECONDS);
  let failures = 0;
  const failChance = random.pick([0, 0, 0.1]);
  const excuse = (label: string, ...by: Taken[]) => {
    const isExcused = by.some(({ life, at }) => life.isDead || schedule().isTroubled(life.node, at));
    if (isExcused) schedule().labels.add(label);
    else schedule().faults.add(`Without a cause: ${label}.`);
  };

  /** Returns whether it was taken. */
  async function visit(life: Life, to: string, id: string): Promise<boolean> {
    const present = visitors.get(to) ?? new Set();
    visitors.set(to, present);
    // A third failure would take a long time.
    const isTaken = !random.isTrue(failChance) || failures++ >= MOST_FAILURES;
    const duration = random.pick(slowness);
    const begun = virtualNow();
    const at = begun - EXCUSE_MILLISECONDS;
    for (const other of present) if (other !== life && to !== MAIL_SERVER) excuse('lease lost', { life: other, at });
    present.add(life);
    try {
      await pause(duration);
      await callOutside(`call ${to}`, async () => undefined);
    } finally {
      present.delete(life);
    }
    if (!isTaken) return false;
    const all = received.get(to) ?? new Map<string, Taken>();
    received.set(to, all);
    const before = all.get(id);
    // The first or this sender may have lost its lease.
    if (before) excuse(to === MAIL_SERVER ? 'mail sent twice' : 'event delivered twice', before, { life, at });
    else all.set(id, { life, at: begun });
    return true;
  }

  return {
    received,
    outside: {
      post: (life) => async (url, headers) =>
        (await visit(life, url, String(headers['webhook-id'])))
          ? { status: 200, error: undefined, milliseconds: 10 }
          : { status: 500, error: 'It answered 500.', milliseconds: 10 },
      send:
        (life) =>
        async ({ id }) => {
          if (await visit(life, MAIL_SERVER, id)) return;
          throw new MailFailure('The mail server is busy.', { isOfServer: true });
        },
    },
  };
}
