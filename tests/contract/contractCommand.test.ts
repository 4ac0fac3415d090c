import { beforeAll, expect, it, vi } from 'vitest';
import { restProcedures } from '../../server/api/procedures.ts';
import { problemsOf } from '../../server/contract/report.ts';
import { checkContract } from '../../server/contract/run.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';
import { givenFaultyProxy, type ProxiedAnswer } from '../harness/faultyProxy.ts';
import { testService, withOwnService } from '../harness/service.ts';
import { givenKey, givenWorld } from '../harness/world.ts';

/** A few operations; all of them, and all faults, are checked in contractCommand.slow.test.ts. */

// The failed sign-ins of the checks would count against those of other suites.
withOwnService();

const FEW = ['boards.create', 'boards.update', 'boards.get', 'boards.delete', 'cards.list'];

let token: string;
beforeAll(async () => {
  vi.stubGlobal('fetch', uncheckedFetch());
  const { users } = await givenWorld();
  token = (await givenKey(users.superadmin)).secret;
  return () => vi.unstubAllGlobals();
});

const check = async (url: string) =>
  problemsOf(
    await checkContract(
      { url, token },
      { isWriting: true, known: restProcedures.filter(({ name }) => FEW.includes(name)), announce: () => undefined },
    ),
  ).map(({ problem }) => problem);

it('finds nothing in this service', async () => {
  expect(await check((await testService()).url)).toEqual([]);
});

it('finds a header that a proxy removes, and nothing else', async () => {
  const loseEtag = ({ headers: { etag: _, ...others } }: ProxiedAnswer) => ({ headers: others });
  const proxy = await givenFaultyProxy((await testService()).url, [{ path: '*', answer: loseEtag }]);

  const problems = await check(proxy.url).finally(proxy.close);

  expect(problems.map((problem) => problem.replace(/^.*: /, ''))).toEqual(['The header ETag is missing.']);
});
