import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NEEDED_SERVICE } from '../../client/serviceVersion.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type GivenAnswer, givenAnswers, refusal, success } from '../harness/client.ts';

afterEach(() => vi.restoreAllMocks());

/** The answer of a service with this version. */
const from =
  (version: string, answer: GivenAnswer = success({ boards: [] })): GivenAnswer =>
  async () => {
    const response = await answer();
    response.headers.set('X-Deckhand-Version', version);
    return response;
  };

const messageOf = (version: string, advice: string) =>
  `The service at http://service.test has version ${version}. This client (${packageJson.version}) ${advice}`;
const OLD = '0.9.12';
const IS_OLD = messageOf(OLD, `needs ${NEEDED_SERVICE} or later: some calls may fail. Upgrade the service first.`);

/** The warnings about a service with these answers. */
async function warningsOf(...answers: GivenAnswer[]) {
  const warn = vi.fn();
  const { client } = givenAnswers({ warn }, ...answers);
  for (const [at] of answers.entries())
    await client
      .as({ projectId: at + 1 })
      .boards.list.query()
      .catch(() => undefined);
  return warn.mock.calls.flat();
}

it('the version of the client is sent with each request, also that of a stream', async () => {
  const { client, header } = givenAnswers({ retries: 0 }, refusal(403), refusal(403));

  await Promise.allSettled([client.boards.list.query(), client.events.follow().next()]);

  expect(header('x-deckhand-client')).toEqual([packageJson.version, packageJson.version]);
});

describe('a service that does not fit the client', () => {
  it('is warned about once, whatever the first answer is', async () => {
    expect(await warningsOf(from(OLD), from(OLD), from(OLD, refusal(403)))).toEqual([IS_OLD]);
    expect(await warningsOf(from(OLD, refusal(403)), from(OLD))).toEqual([IS_OLD]);
  });

  it.each(['2.0.0', '10.0.0', '2.0.0-rc.1'])('is warned about if its major version is newer: %s', async (version) => {
    const advice = 'is of an earlier major version: some calls may fail or have other results. Upgrade the client.';

    expect(await warningsOf(from(version), from(version))).toEqual([messageOf(version, advice)]);
  });

  it.each<[string, GivenAnswer]>([
    ['the needed version', from(NEEDED_SERVICE)],
    ['a later patch', from('1.0.10')],
    ['a later minor version', from('1.10.0')],
    ['a pre-release', from(`${NEEDED_SERVICE}-rc.1`)],
    ['no version', from('unknown')],
    ['four numbers', from('0.9.1.2')],
    ['an empty text', from('')],
    ['no header, such as a fake', success({ boards: [] })],
  ])('is not one with %s', async (_, answer) => {
    expect(await warningsOf(answer)).toEqual([]);
  });

  it('is warned about on the console by default, and not at all with `warn: false`', async () => {
    const onConsole = vi.spyOn(console, 'warn').mockReturnValue();

    await givenAnswers({ warn: false }, from(OLD)).client.boards.list.query();
    expect(onConsole).not.toHaveBeenCalled();

    await givenAnswers({}, from(OLD)).client.boards.list.query();
    expect(onConsole.mock.calls).toEqual([[IS_OLD]]);
  });

  const fail = () => {
    throw new Error('No space left on device.');
  };
  it.each([fail, async () => fail()])('fails no call if `warn` throws or rejects', async (warn) => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);

    expect(await givenAnswers({ warn }, from(OLD)).client.boards.list.query()).toEqual({ boards: [] });
    await setImmediate();

    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});
