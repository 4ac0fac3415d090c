import { type RestProcedure, restProcedures } from '../api/procedures.ts';
import { ACCESS } from '../domain/access/access.ts';
import { restProblems, rpcProblems } from './exchange.ts';
import { expectStatus, type Run } from './expectation.ts';
import { invalidInput, unknownRowInput } from './input.ts';
import { type Answer, inTurns, type Sent } from './sender.ts';

/** Calls that every operation refuses before it does anything; mutations, too, so they change nothing. */
export async function checkRefusals(run: Run): Promise<void> {
  const { record, procedures } = run;
  await inTurns(restProcedures, async (procedure) => {
    await record('without a key', procedure.name, async () => {
      const { needsSignIn } = ACCESS[procedure.access];
      const call = { procedure, input: needsSignIn ? {} : invalidInput(procedure), isAnonymous: true };
      const { rest, rpc, problems } = await expectStatus(run, call, [needsSignIn ? 401 : 422]);
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

/** Without a key, so that a service that would execute it can't. */
async function methodProblems({ send }: Run, { name, type, rest }: RestProcedure): Promise<string[]> {
  const refused = (answer: Answer, allowed: string, problems: string[]) => [
    ...(answer.status === 405 ? [] : [`405 was expected.`]),
    ...(answer.headers.get('allow') === allowed ? [] : [`The header Allow is not ${allowed}.`]),
    ...problems,
  ];
  const overRest: Sent = { method: 'GET', path: `/api${rest.path}`, isAnonymous: true };
  const overRpc: Sent = { method: type === 'query' ? 'PUT' : 'GET', path: `/trpc/${name}`, isAnonymous: true };
  const [ofRest, ofRpc] = [await send(overRest), await send(overRpc)];
  return [
    ...refused(ofRest, 'POST', restProblems('GET', rest.path, ofRest)).map((line) => `REST ${ofRest.status}: ${line}`),
    ...refused(ofRpc, type === 'query' ? 'GET, POST' : 'POST', rpcProblems(name, ofRpc)).map(
      (line) => `RPC ${ofRpc.status}: ${line}`,
    ),
  ];
}
