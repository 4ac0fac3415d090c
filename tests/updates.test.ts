import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../server/api/procedures.ts';
import { inputSchemaOf } from './harness/arbitrary.ts';
import { type Given, givenStartState, inputFor } from './harness/startStates.ts';
import { givenThemeVersion, givenWorld, stored, type World } from './harness/world.ts';

/** Every procedure with fields that are not changed unless they are sent. */
const updates = procedures.filter((procedure) => optionalFields(procedure).length > 0);

function optionalFields(procedure: Procedure): { name: string; description: string }[] {
  return Object.entries(inputSchemaOf(procedure).properties ?? {})
    .map(([name, { description = '' }]) => ({ name, description }))
    .filter(({ description }) => description.includes('Not changed if not sent'));
}

/** The field of the answer that shows a field of the input. */
const ANSWERED_AS: Record<string, string> = { reason: 'deprecation_reason' };

it('there are updates', () => {
  expect(updates.map(({ name }) => name)).toEqual(expect.arrayContaining(['cards.update', 'plans.set']));
});

describe.each(updates)('$name', (procedure) => {
  it('changes an absent field never, and a null one as its description says', async () => {
    const world = await givenWorld();
    const given = await givenStartState(procedure, world);
    if ('replacement_version_id' in given) given.replacement_version_id = await givenReplacement(world, given);
    const full = { ...inputFor(procedure, given), ...given };
    const { required = [] } = inputSchemaOf(procedure);
    const needed = Object.fromEntries(required.map((name) => [name, full[name]]));
    const call = async (input: Given): Promise<Given> => {
      const { status, body } = await world.asSuperadmin.post(procedure.rest!.path, input);
      expect(status, JSON.stringify(body)).toBe(200);
      const [row] = Object.values(body.data);
      return typeof row === 'string' ? JSON.parse(row) : (row as Given);
    };

    for (const { name, description } of optionalFields(procedure)) {
      const shown = ANSWERED_AS[name] ?? name;
      const before = await call(full);
      if (!(shown in before)) continue;
      expect(before[shown], `${name} has a value`).not.toBeNull();

      expect((await call(needed))[shown], `${name} is absent`).toEqual(before[shown]);
      const cleared = description.endsWith('null clears it.');
      expect((await call({ ...needed, [name]: null }))[shown], `${name} is null`).toEqual(
        cleared ? null : before[shown],
      );
    }
  });
});

/** Another published version of the same theme. */
async function givenReplacement({ project }: World, { version_id }: Given): Promise<number> {
  const { theme_id } = await stored('theme_versions', version_id as number);
  return givenThemeVersion(project, { theme_id });
}
