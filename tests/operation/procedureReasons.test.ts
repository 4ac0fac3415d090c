import { expect, it } from 'vitest';
import { procedures, restProcedures } from '../../server/api/procedures.ts';
import { reasonsOf } from '../../server/api/reasons.ts';
import { documentedReasons } from '../../server/contract/documentedReasons.ts';

it('an operation documents a status of each reason', () => {
  const undocumented = restProcedures.flatMap((procedure) =>
    procedure.ownReasons
      .filter((reason) => !documentedReasons.get(reason)!.statuses.some((status) => hasStatus(procedure, status)))
      .map((reason) => `${procedure.name} ${reason}`),
  );

  expect(undocumented).toEqual([]);
});

const hasStatus = ({ rest }: (typeof restProcedures)[number], status: number) =>
  (rest.errors as readonly number[]).includes(status);

it.each([
  ['cards.create', ['unknown_reference', 'role_missing', 'invalid_input', 'idempotency_key_reused'], ['last_owner']],
  ['cards.list', ['cursor_invalid', 'no_project_access'], ['idempotency_key_reused', 'not_found']],
  ['auth.authenticate', ['code_required', 'over_rate_limit'], ['not_signed_in', 'role_missing']],
  ['masterBoards.sync', ['not_a_superadmin', 'service_stopping'], ['role_missing']],
])('%s fails for reasons of its access, input and rules, and for no others', (name, some, others) => {
  const reasons = reasonsOf(procedures.find((procedure) => procedure.name === name)!);

  expect(reasons).toEqual(expect.arrayContaining(some));
  expect(reasons.filter((reason) => others.includes(reason))).toEqual([]);
});
