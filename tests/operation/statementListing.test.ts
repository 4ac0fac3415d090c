import { describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { inputFor } from '../../server/contract/input.ts';
import { capture } from '../harness/plans.ts';
import { databaseUrl } from '../harness/service.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import { overRpc } from '../harness/surfaces.ts';
import { givenWorld } from '../harness/world.ts';

/** Statements with more parts than these are hard to read in the code, which puts them together. */
const MOST_PARTS = 5;
const PART =
  /\b(\w+)(?: \([^()]*\))? as (?:not )?(?:materialized )?\(\s*(?:select|insert|update|delete|values|with)\b/gi;

const HEADER = `-- The longest statements, as they reach the embedded database, each with the operations that run it. Their plans are held by
-- tests/operation/plans.test.ts and tests/operation/staleStatistics.test.ts. A test compares this listing with what runs. After a change:
-- npx vitest run --project embedded tests/operation/statementListing.test.ts --update
`;

describe.skipIf(databaseUrl)('the listing of statements', () => {
  it('has those with more than five parts, and the operations that run them', async () => {
    /** By the names of their parts: statements that differ only in a condition are listed once. */
    const statements = new Map<string, { text: string; operations: Set<string> }>();
    for (const procedure of procedures) {
      const world = await givenWorld();
      const input = inputFor(procedure, await givenStartState(procedure, world));
      const sent = await capture(() => overRpc(allowedCaller(world, procedure), procedure, input));
      for (const { text } of sent) {
        const parts = Array.from(text.matchAll(PART), ([, name]) => name);
        if (parts.length <= MOST_PARTS) continue;
        const known = statements.get(parts.join()) ?? { text, operations: new Set() };
        known.operations.add(procedure.name);
        statements.set(parts.join(), known);
      }
    }

    const listed = Array.from(
      statements.values(),
      ({ text, operations }) => `-- ${[...operations].join(', ')}\n${text.trim()};\n`,
    );
    await expect([HEADER, ...listed].join('\n')).toMatchFileSnapshot('../../docs/statements.sql');
  });
});
