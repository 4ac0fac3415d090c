import { METHODS } from 'node:http';
import { checkNumber, checkWhole, oneOf, readFields, SandboxMisuse, textOf } from './misuse.ts';

const OF_CALLS = ['path', 'method', 'skip', 'times'] as const;
const OF_WEBHOOKS = ['type', 'skip', 'times'] as const;

/** What can go wrong on demand, and the fields that choose when. */
export const FAULTS = {
  too_many_requests: {
    does: 'The call is refused with a 429. Retry-After has the seconds.',
    takes: [...OF_CALLS, 'seconds'],
  },
  unavailable: { does: 'The call gets a 503 of a gateway, as plain text.', takes: [...OF_CALLS, 'seconds'] },
  lost_answer: { does: 'The call is executed, and the connection is closed without an answer.', takes: OF_CALLS },
  cut_answer: {
    does: 'The call is executed, and the connection is closed in the middle of the answer.',
    takes: OF_CALLS,
  },
  late_answer: {
    does: 'The call is executed, and its answer comes after the seconds.',
    takes: [...OF_CALLS, 'seconds'],
  },
  late_webhook: { does: 'The message reaches its receiver after the seconds.', takes: [...OF_WEBHOOKS, 'seconds'] },
  doubled_webhook: { does: 'The receiver gets the message twice.', takes: OF_WEBHOOKS },
  unordered_webhook: { does: 'The receiver gets the message after the next one of its webhook.', takes: OF_WEBHOOKS },
  newer_version: {
    does: 'Until the faults are removed, answers have unknown fields and a newer version; an event of an unknown type is written.',
    takes: [],
  },
} as const satisfies Record<string, { does: string; takes: readonly Field[] }>;

export type FaultName = keyof typeof FAULTS;

export type FaultInput = {
  fault: FaultName;
  /** Only calls of this path; a `*` at the end stands for anything. All if not given. */
  path?: string;
  method?: string;
  /** Only events of this type. */
  type?: string;
  /** How many that match are left alone first. */
  skip?: number;
  /** How many are hit then; 1 if not given. */
  times?: number;
  seconds?: number;
};

/** `hits` counts those that were hit so far. */
export type ActiveFault = FaultInput & { skip: number; times: number; seconds: number; hits: number };

type Field = Exclude<keyof FaultInput, 'fault'>;

/** The longest delay; below the 15 seconds after which the service gives up a webhook. */
const MOST_SECONDS = 10;
const MOST_TIMES = 1_000_000;
const MOST_FAULTS = 1000;

const PATH_FORM =
  'path must begin with a slash, and may end with a *, as in /api/services/operations/v1/operations/cards/*.';
const METHOD_FORM = 'method must be a method of HTTP, as in POST.';
const TYPE_FORM = 'type must be the type of an event, as in card.created.';

/** The faults of a sandbox, in the order in which they were added. */
export function makeFaults() {
  const active: ActiveFault[] = [];
  const names = Object.keys(FAULTS) as FaultName[];

  return {
    list: (): readonly ActiveFault[] => active,
    clear: () => void active.splice(0),
    /** Whether an answer is one of a newer version, which counts as hit. */
    isNewerVersion: (): boolean => {
      const newer = active.find(({ fault }) => fault === 'newer_version');
      if (newer) newer.hits++;
      return newer !== undefined;
    },

    add: (input: unknown): ActiveFault => {
      const name = oneOf((input as FaultInput | null)?.fault, names, 'fault');
      const given = readFields(input, ['fault', ...(FAULTS[name].takes as readonly Field[])], name) as FaultInput;
      const { path, method, type, skip = 0, times = 1, seconds = 1 } = given;
      if (path !== undefined) textOf(path, /^\/[^*]*\*?$/, PATH_FORM);
      if (method !== undefined && !METHODS.includes(textOf(method, /./, METHOD_FORM).toUpperCase()))
        throw new SandboxMisuse(METHOD_FORM);
      if (type !== undefined) textOf(type, /^\w+\.\w+$/, TYPE_FORM);
      checkWhole(skip, 0, MOST_TIMES, 'skip');
      checkWhole(times, 1, MOST_TIMES, 'times');
      checkNumber(seconds, 0, MOST_SECONDS, 'seconds');
      if (active.length >= MOST_FAULTS) throw new SandboxMisuse(`There are ${MOST_FAULTS} faults. Remove them first.`);
      const fault = { ...given, skip, times, seconds, hits: 0 };
      active.push(fault);
      return fault;
    },

    /** The first fault for a call, which counts as hit. */
    takeForCall: (method: string, url: string) =>
      take(active, (fault) => 'path' in takesOf(fault) && isCalled(fault, method, url)),
    takeForWebhook: (eventType: string) =>
      take(active, (fault) => 'type' in takesOf(fault) && [undefined, eventType].includes(fault.type)),
  };
}

export type Faults = ReturnType<typeof makeFaults>;

const takesOf = ({ fault }: ActiveFault) => Object.fromEntries(FAULTS[fault].takes.map((name) => [name, true]));

function take(active: ActiveFault[], isMeant: (fault: ActiveFault) => boolean): ActiveFault | undefined {
  for (const fault of active) {
    if (fault.hits >= fault.times || !isMeant(fault)) continue;
    if (fault.skip > 0) fault.skip--;
    else {
      fault.hits++;
      return fault;
    }
  }
  return undefined;
}

/** An RPC batch names its procedures with commas: a fault of one of them hits the whole batch. */
function isCalled({ path = '*', method = '' }: ActiveFault, called: string, url: string): boolean {
  const [pathname = ''] = url.split('?', 1);
  const paths = pathname.split(',').map((part, at) => (at === 0 ? part : `/trpc/${part}`));
  const isPath = (one: string) => (path.endsWith('*') ? one.startsWith(path.slice(0, -1)) : one === path);
  return ['', called].includes(method.toUpperCase()) && paths.some(isPath);
}
