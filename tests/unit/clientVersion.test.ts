import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createClient } from '../../client/client.ts';
import { NEEDED_SERVICE } from '../../client/serviceVersion.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type GivenAnswer, givenAnswers, refusal, success } from '../harness/client.ts';

afterEach(() => vi.restoreAllMocks());

const OLD = '0.9.12';

/** The answer of a service with this version. */
const from =
  (version: string, answer: GivenAnswer = success({ boards: [] })): GivenAnswer =>
  async () => {
    const response = await answer();
    response.headers.set('X-Deckhand-Version', version);
    return response;
  };

const MESSAGE = `The service at http://service.test has version ${OLD}. This client (${packageJson.version}) needs ${NEEDED_SERVICE} or later: some calls may fail. Upgrade the service first.`;

describe('the version of the client', () => {
  it('is sent with each request, also that of a stream', async () => {
    const sent: (string | null)[] = [];
    const client = createClient({
      url: 'http://service.test',
      retries: 0,
      fetch: async (_, request) => {
        sent.push(new Headers(request?.headers).get('x-deckhand-client'));
        return refusal(403)();
      },
    });

    await client.boards.list.query().catch(() => undefined);
    await client.events
      .follow()
      .next()
      .catch(() => undefined);

    expect(sent).toEqual([packageJson.version, packageJson.version]);
  });
});

describe('a service that is older than the client needs', () => {
  it('is warned about once for a client, also in other projects', async () => {
    const warn = vi.fn();
    const { client } = givenAnswers({ warn }, from(OLD), from(OLD), from(OLD, refusal(403)));

    await client.boards.list.query();
    await client.as({ projectId: 2 }).boards.list.query();
    await client.tags.list.query().catch(() => undefined);

    expect(warn.mock.calls).toEqual([[MESSAGE]]);
  });

  it('is warned about when the first answer is an error', async () => {
    const warn = vi.fn();
    const { client } = givenAnswers({ warn }, from(OLD, refusal(403)));

    await client.boards.list.query().catch(() => undefined);

    expect(warn).toHaveBeenCalledOnce();
  });

  it('is warned about on the console by default, and not at all with `warn: false`', async () => {
    const onConsole = vi.spyOn(console, 'warn').mockReturnValue();

    await givenAnswers({ warn: false }, from(OLD)).client.boards.list.query();
    expect(onConsole).not.toHaveBeenCalled();

    await givenAnswers({}, from(OLD)).client.boards.list.query();
    expect(onConsole.mock.calls).toEqual([[MESSAGE]]);
  });

  it('does not fail a call if `warn` throws', async () => {
    const warn = () => {
      throw new Error('No space left on device.');
    };

    expect(await givenAnswers({ warn }, from(OLD)).client.boards.list.query()).toEqual({ boards: [] });
  });

  it('leaves no unhandled rejection if `warn` is async and rejects', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const warn = async () => {
      throw new Error('No space left on device.');
    };

    await givenAnswers({ warn }, from(OLD)).client.boards.list.query();
    await setImmediate();

    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it.each([
    ['the needed one', NEEDED_SERVICE],
    ['a later patch', '1.0.10'],
    ['a later minor version', '1.10.0'],
    ['a pre-release', `${NEEDED_SERVICE}-rc.1`],
    ['no version', 'unknown'],
    ['four numbers', '0.9.1.2'],
    ['an empty text', ''],
  ])('is not one with %s', async (_, version) => {
    const warn = vi.fn();

    await givenAnswers({ warn }, from(version)).client.boards.list.query();

    expect(warn).not.toHaveBeenCalled();
  });

  it('is not one without the header, such as a fake', async () => {
    const warn = vi.fn();

    await givenAnswers({ warn }, success({ boards: [] })).client.boards.list.query();

    expect(warn).not.toHaveBeenCalled();
  });

  it('throws for a `warn` that is neither a function nor false', () => {
    expect(() => createClient({ url: 'http://service.test', warn: true as never })).toThrow(
      'warn must be a function or false.',
    );
  });
});

describe('a service of a newer major version', () => {
  it.each(['2.0.0', '10.0.0', '2.0.0-rc.1'])('is warned about once: %s', async (version) => {
    const warn = vi.fn();
    const { client } = givenAnswers({ warn }, from(version), from(version));

    await client.boards.list.query();
    await client.boards.list.query();

    expect(warn.mock.calls).toEqual([
      [
        `The service at http://service.test has version ${version}. This client (${packageJson.version}) is of an earlier major version: some calls may fail or have other results. Upgrade the client.`,
      ],
    ]);
  });
});
