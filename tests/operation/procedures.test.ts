import { initTRPC } from '@trpc/server';
import { describe, expect, it } from 'vitest';
import { type Procedure, procedures, proceduresOf, restProcedures } from '../../server/api/procedures.ts';
import { kebab } from '../../server/cli/options.ts';
import { type Given, inputFor, inputSchemaOf } from '../../server/contract/input.ts';
import { givenStartState } from '../harness/startStates.ts';
import { overRest } from '../harness/surfaces.ts';
import { givenThemeVersion, givenWorld, stored } from '../harness/world.ts';

/** The optional fields that are not changed unless they are sent; whether null clears them. */
function unchangedFields(procedure: Procedure): { name: string; isCleared: boolean }[] {
  return Object.entries(inputSchemaOf(procedure).properties ?? {})
    .filter(([, { description = '' }]) => description.includes('Not changed if not sent'))
    .map(([name, { description = '' }]) => ({ name, isCleared: description.endsWith('null clears it.') }));
}

describe('an update', () => {
  const updates = procedures.filter((procedure) => unchangedFields(procedure).length > 0);
  /** The field of the answer that shows a field of the input. */
  const ANSWERED_AS: Record<string, string> = { reason: 'deprecation_reason' };

  it('has such fields in cards.update and plans.set', () => {
    expect(updates.map(({ name }) => name)).toEqual(expect.arrayContaining(['cards.update', 'plans.set']));
  });

  it.each(updates)('$name changes an absent field never, and a null one as its description says', async (procedure) => {
    const world = await givenWorld();
    const given = await givenStartState(procedure, world);
    // Another published version of the same theme.
    if ('replacement_version_id' in given)
      given.replacement_version_id = await givenThemeVersion(world.project, {
        theme_id: (await stored('theme_versions', given.version_id as number)).theme_id,
      });
    const full = { ...inputFor(procedure, given), ...given };
    const { required = [] } = inputSchemaOf(procedure);
    const needed = Object.fromEntries(required.map((name) => [name, full[name]]));
    const call = async (input: Given): Promise<Given> => {
      const { data } = await overRest(world.asSuperadmin, procedure, input);
      return Object.values(data as Record<string, Given>)[0]!;
    };

    const fields = unchangedFields(procedure);
    const before = await call(full);
    const whenAbsent = await call(needed);
    const whenNull = await call({ ...needed, ...Object.fromEntries(fields.map(({ name }) => [name, null])) });

    for (const { name, isCleared } of fields) {
      const shown = ANSWERED_AS[name] ?? name;
      if (!(shown in before)) continue;
      expect(before[shown], `${name} has a value`).not.toBeNull();
      expect(whenAbsent[shown], `${name} is absent`).toEqual(before[shown]);
      expect(whenNull[shown], `${name} is null`).toEqual(isCleared ? null : before[shown]);
    }
  });
});

/** `cards.move` is `cards/move` below the segment of its area. */
function pathOf(name: string): string {
  const [noun, verb] = kebab(name).split('.') as [string, string];
  if (noun === 'account' || noun === 'auth') return `/v1/${noun}/${verb}`;
  if (noun === 'themes') {
    const isOfVersion = /-versions?$|^deprecate-|^undo-/.test(verb);
    return `/services/websites/v1/themes/${isOfVersion ? 'versions/' : ''}${verb.replace(/-versions?$/, '')}`;
  }
  if (/^(master-|template-(runs|files)|releases|rollouts)/.test(noun))
    return `/services/operations/v1/admin/${noun}/${verb}`;
  const isOperation = ['boards', 'groups', 'cards', 'comments', 'tags', 'tour', 'trash', 'templates'].includes(noun);
  return `/services/${isOperation ? 'operations/v1/operations' : 'platforms/v1'}/${noun}/${verb}`;
}

describe('the router', () => {
  it('throws for a procedure without an access level', () => {
    const { router, procedure } = initTRPC.create();
    const withoutAccess = router({ tags: router({ list: procedure.query(() => []) }) });

    expect(() => proceduresOf(withoutAccess)).toThrow('tags.list has no access level');
  });

  it('throws for a procedure without a REST path that does not say why', () => {
    const { router, procedure } = initTRPC.meta<object>().create();
    const withMeta = (meta: object) =>
      router({ tags: router({ list: procedure.meta({ access: 'viewer', ...meta }).query(() => []) }) });

    expect(() => proceduresOf(withMeta({}))).toThrow('tags.list has no REST path');
    expect(proceduresOf(withMeta({ rpcOnly: 'It streams.' }))).toMatchObject([{ name: 'tags.list', rest: undefined }]);
  });

  it('has an output schema for each procedure', () => {
    expect(procedures.filter(({ output }) => output === undefined)).toEqual([]);
  });

  it('has each REST path once, in a documented area', () => {
    const paths = restProcedures.map(({ rest }) => rest.path);

    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths)
      expect(path).toMatch(
        /^\/v1\/(authenticate|(account|auth)\/[a-z-]+)$|^\/services\/(operations|platforms|websites)\/v1\/[a-z/-]+$/,
      );
  });

  it('has paths beyond the specification that follow from the names of the procedures', () => {
    const others = restProcedures.filter(({ rest }) => !rest.isSpecified);

    expect(others.length).toBeGreaterThan(60);
    for (const { name, rest } of others) expect(rest.path, name).toBe(pathOf(name));
  });
});
