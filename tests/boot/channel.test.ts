import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Calls, type Channel, openChannel } from '../../server/runtime/channel.ts';

type Here = { double: (value: number) => Promise<number>; fail: () => never; note: (value: string) => void };

/** Two processes in one; messages cross as JSON. */
function givenChannels() {
  const noted: string[] = [];
  const sent: unknown[] = [];
  const calls: Here = {
    double: async (value) => value * 2,
    fail: () => {
      throw new Error('not here');
    },
    note: (value) => void noted.push(value),
  };
  const asking: Channel<Here> = openChannel<Here>((messages) => {
    sent.push(messages);
    answering.receive(JSON.parse(JSON.stringify(messages)));
  }, {});
  const answering: Channel<Calls> = openChannel<Calls>(
    (messages) => asking.receive(JSON.parse(JSON.stringify(messages))),
    calls,
  );
  return { asking, noted, sent };
}

describe('a channel to another process', () => {
  it('answers each question, also many at once, which are sent together', async () => {
    const { asking, sent } = givenChannels();

    const answers = await Promise.all([1, 2, 3].map((value) => asking.ask('double', value)));

    expect(answers).toEqual([2, 4, 6]);
    expect(sent).toHaveLength(1);
  });

  it('rejects what fails there, with its message', async () => {
    await expect(givenChannels().asking.ask('fail')).rejects.toThrow('not here');
  });

  it('tells without an answer', async () => {
    const { asking, noted } = givenChannels();

    asking.tell('note', 'once');
    await setImmediate();

    expect(noted).toEqual(['once']);
  });
});
