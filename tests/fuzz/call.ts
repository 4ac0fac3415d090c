import fc from 'fast-check';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { inputSchemaOf } from '../../server/contract/input.ts';
import { changed, validValue, wrongChange } from '../harness/arbitrary.ts';
import { hostileValue } from './hostile.ts';
import type { FuzzWorld } from './world.ts';

/** Calls generated from the schemas of the operations: valid, nearly valid and hostile. */

export type Call = { procedure: Procedure; kind: string; inputIn: (world: FuzzWorld) => unknown };

/** Calls of one procedure. */
function callOf(procedure: Procedure): fc.Arbitrary<Call> {
  const schema = inputSchemaOf(procedure);
  const fields = Object.keys(schema.properties ?? {});
  const hostile = fc.record({ field: fc.constantFrom(...fields, 'x', '__proto__'), value: hostileValue });
  const change = fc.oneof(
    { weight: 3, arbitrary: fc.constant({ kind: 'valid', change: undefined }) },
    { weight: 2, arbitrary: wrongChange(schema).map((change) => ({ kind: 'nearly valid', change })) },
    {
      weight: 2,
      arbitrary: hostile.map(({ field, value }) => ({ kind: 'hostile', change: { path: [field], value } })),
    },
  );
  return fc.tuple(validValue(schema), change, fc.nat()).map(([made, { kind, change }, pick]) => ({
    procedure,
    kind,
    inputIn: (world) => {
      const named = withKnown(procedure.name, made, pick, world);
      return change ? changed(named, change) : named;
    },
  }));
}

/** Replaces generated references by known values; absent and null fields stay as they are. */
function withKnown(operation: string, made: unknown, pick: number, world: FuzzWorld): unknown {
  if (Array.isArray(made)) return made.map((part, at) => withKnown(operation, part, pick + at, world));
  if (typeof made !== 'object' || made === null) return made;
  const fields = Object.entries(made).map(([field, value], at) => {
    const known = value === null ? [] : world.known(nameOf(operation, field));
    // Every tenth generated value stays, to refer to nothing.
    if (known.length > 0 && (pick + at) % 10 !== 0) return [field, known[(pick + at) % known.length]];
    return [field, isId(field) && value !== null ? UNKNOWN_ID : withKnown(operation, value, pick, world)];
  });
  return Object.fromEntries(fields);
}

/** Never a random id: a small one could be a user that the run needs. */
const UNKNOWN_ID = 2 ** 31 - 1;
const isId = (field: string) => /(^|_)id$/.test(field);

const NOUNS: Record<string, string> = {
  board_id: 'Boards',
  group_id: 'Groups',
  card_id: 'Cards',
  tag_id: 'Tags',
  parent_comment_id: 'Comments',
  owner_id: 'Users',
  user_id: 'Users',
  project_id: 'Projects',
  default_project_id: 'Projects',
  platform_id: 'Platforms',
  theme_id: 'Themes',
  version_id: 'Versions',
  replacement_version_id: 'Versions',
};

/** The pool of known values for a field: a kind of row, or the field name. */
function nameOf(operation: string, field: string): string {
  const router = operation.split('.', 1)[0]!;
  if (field === 'id') return router;
  const noun = NOUNS[field];
  if (noun) return /^(master|template)/.test(router) ? `master${noun}` : noun.toLowerCase();
  // Created or updated users keep their generated e-mail address and password.
  return router === 'users' && /^(email|password)$/.test(field) ? '' : field;
}

export const calls = new Map(procedures.map((procedure) => [procedure.name, callOf(procedure)]));
const callsOf = (isWanted: (procedure: Procedure) => boolean) =>
  fc.oneof(...procedures.filter(isWanted).map(({ name }) => calls.get(name)!));

export const anyCall = callsOf(() => true);
export const restCall = callsOf(({ rest }) => rest !== undefined);

/** Batches contain no calls that check passwords: only a few of those fit into a second. */
export const batchedCall = callsOf(({ name }) => !/^(auth|account|users)\./.test(name));

/** Calls that check passwords, or add rows that can't be deleted. */
const COSTLY =
  /^(auth|account|users|platforms|projects|plans|subscriptions|themes)\.(?!.*(list|whoAmI|deprecate))|^master.*(sync|push|create)$/i;
const isCheap = ({ name }: Procedure) => !COSTLY.test(name);
const signIn = calls.get('auth.authenticate')!;

export const cheapCall = callsOf(isCheap);
export const restCheapCall = fc.oneof(
  { weight: 100, arbitrary: callsOf((procedure) => procedure.rest !== undefined && isCheap(procedure)) },
  { weight: 1, arbitrary: signIn },
);
