import { pino } from 'pino';
import { expect, it } from 'vitest';
import { shareAmong } from '../../server/boot/workers/shared.ts';
import { makeChangeSignal } from '../../server/limits/changeSignal.ts';

it('a change in one worker reaches the others, without Redis', () => {
  const heard: string[] = [];
  const listeners = new Map<number, () => void>();
  const members = new Map(
    [1, 2, 3].map((id) => [id, { channel: { tell: () => listeners.get(id)?.() } }] as const),
  ) as unknown as Parameters<typeof shareAmong>[0];
  const shared = shareAmong(members, 3);
  const signals = [1, 2, 3].map((id) => {
    const send = () => shared.callsOf(id).changed();
    const listen = (onChange: () => void) => void listeners.set(id, onChange);
    const signal = makeChangeSignal(undefined, () => undefined, pino({ level: 'silent' }), { send, listen });
    signal.listen(() => heard.push(`worker ${id}`));
    return signal;
  });

  signals[1]!.send();

  expect(heard).toEqual(['worker 1', 'worker 3']);
  for (const { close } of signals) close();
});
