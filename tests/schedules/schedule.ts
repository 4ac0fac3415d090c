import type { Random } from '../harness/random.ts';
import {
  arrived,
  FAULTS,
  type Fault,
  killNode,
  letThrough,
  RAISED,
  running,
  type Step,
  settleAll,
  watchSteps,
} from './gate.ts';
import type { VirtualServer } from './server.ts';
import { fireTimer, type Life, nextTimer, setVirtualNow, virtualNow } from './time.ts';

/** What happened under a seed: its steps, what it has shown, and what was wrong. */
type Story = { trace: string[]; labels: Set<string>; faults: Set<string> };

export type Schedule = Story & {
  lives: Map<string, Life>;
  /** Whether statements of a node failed or were held since then, or it was killed: it may lose its leases. */
  isTroubled: (node: string, since: number) => boolean;
  /** A change that interrupts work of all nodes; returns how to end it. */
  beginChange: () => () => void;
};

type Play = {
  random: Random;
  server: VirtualServer;
  /** Starts a node, again if it was killed. */
  start: (node: string) => Life;
  /** Whether the calls have ended. */
  isOver: () => boolean;
  /** Whether the nodes have no work left. */
  isAtRest: () => Promise<boolean>;
};

const MOST_STEPS = 4000;
/** Held longer, a renewal (every 3 s) may come after the lease of 10 s has ended. */
const LONGEST_HOLD_MILLISECONDS = 5000;

/** Claims skip rows that another node has locked. */
const CLAIMS = /^(with horizon as|with first as materialized|select \*.* from rollouts o where id)/;

export function makeSchedule({ random, server, start, isOver, isAtRest }: Play) {
  const begun = virtualNow();
  const troubledAt = new Map<string, number>();
  const lives = new Map<string, Life>();
  let changing = 0;
  const schedule: Schedule = { trace: [], labels: new Set(), faults: new Set(), lives, isTroubled, beginChange };
  const { trace, labels, faults } = schedule;
  // Half of the seeds let the most urgent task go first, and so hold others for long.
  const hasUrgency = random.isTrue(0.5);
  const urgency = new Map<string, number>();
  const timeChance = random.pick([0.02, 0.1, 0.3]);
  const faultChance = random.pick([0, 0.01, 0.04]);
  const killChance = random.pick([0, 0, 0.01]);
  const roughSteps = 40 + random.below(120);
  const retried = new Map<string, Fault>();
  watchSteps((step, outcome) => {
    if (outcome) note(step, outcome);
    if (isHeldLong(step)) troubledAt.set(step.task.life.node, virtualNow());
  });

  return { schedule, play };

  async function play(): Promise<void> {
    for (let count = 0; count < MOST_STEPS; count++) {
      await settleAll(server, (step) => {
        note(step, ' … waits for a lock');
        labels.add('lock waited for');
        if (CLAIMS.test(step.text)) faults.add(`A claim waits for a lock: ${step.text.slice(0, 80)}`);
      });
      const isCalm = count > roughSteps && isOver();
      for (const [node, life] of lives) if (life.isDead && (isCalm || random.isTrue(0.05))) restart(node);
      if (isCalm && arrived.length === 0 && running.size === 0 && (await isAtRest())) return;
      if (!isCalm && random.isTrue(killChance)) await kill(random.pick([...lives.keys()]));
      else if (arrived.length === 0 || random.isTrue(isCalm ? 0.02 : timeChance)) await passTime();
      else letGo(isCalm);
    }
    const left = [...arrived, ...running].map(({ task, text }) => `${nameOf(task)}: ${text.slice(0, 100)}`);
    faults.add(
      `Not at rest after ${MOST_STEPS} steps; calls are ${isOver() ? 'over' : 'under way'}. ${left.join(', ')}`,
    );
  }

  function letGo(isCalm: boolean): void {
    const [first, ...others] = arrived.toSorted(byName);
    if (!first) return;
    const step = hasUrgency && !isCalm ? mostUrgent([first, ...others]) : random.pick([first, ...others]);
    const fault = !isCalm && step.client && random.isTrue(faultChance) ? faultFor(step) : undefined;
    note(step, fault ? ` with ${fault}` : '');
    const name = nameOf(step.task);
    if (step.text === 'begin' && retried.has(name)) labels.add(`${retried.get(name)} retried`);
    if (step.text !== 'rollback') retried.delete(name);
    if (fault) {
      labels.add(fault === 'answer lost' && step.text === 'commit' ? 'connection lost during commit' : fault);
      troubledAt.set(step.task.life.node, virtualNow());
      if (fault in RAISED && step.client?.getTransactionStatus() === 'T') retried.set(name, fault);
    }
    letThrough(step, server, fault);
  }

  function faultFor({ text, client }: Step): Fault | undefined {
    const isOpen = client!.getTransactionStatus() === 'T';
    if (/^(begin|commit|rollback)/.test(text)) return random.pick(['connection lost', 'answer lost']);
    return random.pick(isOpen ? FAULTS : ['deadlock', 'connection lost', 'answer lost']);
  }

  function mostUrgent(steps: Step[]): Step {
    for (const { task } of steps) if (!urgency.has(nameOf(task))) urgency.set(nameOf(task), random.next());
    if (random.isTrue(0.05)) urgency.set(random.pick([...urgency.keys()]), random.next());
    return steps.reduce((one, other) =>
      urgency.get(nameOf(other.task))! > urgency.get(nameOf(one.task))! ? other : one,
    );
  }

  async function passTime(): Promise<void> {
    const timer = nextTimer();
    if (!timer) return;
    if (timer.at > virtualNow()) {
      setVirtualNow(timer.at);
      await server.setNow(timer.at);
    }
    trace.push(`time ${timer.at - begun} for ${nameOf(timer.task)}`);
    fireTimer(timer);
  }

  async function kill(node: string): Promise<void> {
    const life = lives.get(node)!;
    if (life.isDead) return;
    trace.push(`${node} is killed`);
    labels.add('node killed');
    troubledAt.set(node, virtualNow());
    await killNode(life, server);
  }

  function restart(node: string): void {
    trace.push(`${node} starts`);
    lives.set(node, start(node));
  }

  function note({ task, text }: Step, what: string): void {
    trace.push(`${nameOf(task)}: ${text.slice(0, 100)}${what}`);
  }

  function beginChange(): () => void {
    changing++;
    return () => {
      changing--;
      for (const node of lives.keys()) troubledAt.set(node, virtualNow());
    };
  }

  function isTroubled(node: string, since: number): boolean {
    const isHeld = [...arrived, ...running].some((step) => step.task.life.node === node && isHeldLong(step));
    return changing > 0 || isHeld || (troubledAt.get(node) ?? Number.NEGATIVE_INFINITY) >= since;
  }
}

const isHeldLong = ({ client, since }: Step) =>
  client !== undefined && virtualNow() - since > LONGEST_HOLD_MILLISECONDS;
const nameOf = ({ life, name }: Step['task']) => `${life.node} ${name}`;
const keyOf = ({ task, text }: Step) => `${nameOf(task)} ${text}`;
const byName = (one: Step, other: Step) => (keyOf(one) < keyOf(other) ? -1 : keyOf(one) > keyOf(other) ? 1 : 0);
