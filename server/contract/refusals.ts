import type { RestProcedure } from '../api/procedures.ts';
import { ACCESS } from '../domain/access/access.ts';
import { pathOn } from './exchange.ts';
import { expectStatus, type Run } from './expectation.ts';
import { invalidInput, unknownRowInput } from './input.ts';
import { answerProblems } from './judge.ts';
import { inTurns } from './sender.ts';

/** Calls that every operation refuses before it does anything; mutations, too, so they change nothing. */
export async function checkRefusals(run: Run): Promise<void> {
  const { record, procedures } = run;
  await inTurns(run.known, async (procedure) => {
    await record('without a key', procedure.name, async () => {
      const { needsSignIn } = ACCESS[procedure.access];
      const call = { procedure, input: needsSignIn ? {} : invalidInput(procedure), isAnonymous: true };
      const { rest, rpc, problems } = await expectStatus(run, call, [needsSignIn ? 401 : procedure.input ? 422 : 200]);
      const missing = missingSurface(procedure, rest.status === 404, rpc.status === 404);
      if (missing === undefined) procedures.push(procedure);
      return missing === undefined ? problems : [missing];
    });
  });

  await inTurns(procedures, async (procedure) => {
    const { name, access, input } = procedure;
    const isAnonymous = !ACCESS[access].needsSignIn;
    await record('wrong method', name, () => methodProblems(run, procedure));
    if (!input) return;
    await record('invalid input', name, async () => {
      const both = await expectStatus(run, { procedure, input: invalidInput(procedure), isAnonymous }, [422]);
      return both.problems;
    });
    const unknown = unknownRowInput(procedure);
    if (!unknown || run.denied.has(name)) return;
    await record('unknown row', name, async () => {
      return (await expectStatus(run, { procedure, input: unknown }, [404, 422, 403])).problems;
    });
  });
}

/** Without a key, only an unknown path is a 404. */
function missingSurface({ rest }: RestProcedure, isMissingOverRest: boolean, isMissingOverRpc: boolean) {
  if (isMissingOverRest && isMissingOverRpc) return 'The operation is missing.';
  if (isMissingOverRest) return `The operation is missing over REST (${rest.path}); RPC has it.`;
  return isMissingOverRpc ? 'The operation is missing over RPC; REST has it.' : undefined;
}

/** Sent without a key: a service that wrongly accepts the method executes nothing. */
async function methodProblems({ send }: Run, procedure: RestProcedure): Promise<string[]> {
  const isQuery = procedure.type === 'query';
  const problems: string[] = [];
  for (const [surface, method, allow] of [
    ['REST', 'GET', 'POST'],
    ['RPC', isQuery ? 'PUT' : 'GET', isQuery ? 'GET, POST' : 'POST'],
  ] as const) {
    const sent = { method, path: pathOn(surface, procedure), isAnonymous: true };
    problems.push(...answerProblems(sent, await send(sent), { status: 405, allow }));
  }
  return problems;
}
