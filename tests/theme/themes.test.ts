import { describe, expect, it } from 'vitest';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { testService } from '../harness/service.ts';
import {
  givenMember,
  givenProject,
  givenTheme,
  givenThemeVersion,
  givenToken,
  givenUser,
  givenWorld,
  stored,
  type TestProject,
} from '../harness/world.ts';

const PENDING = { approval_status: 'pending', theme_status: 'draft', published_at: null };
const REJECTED = { ...PENDING, approval_status: 'rejected' };
const APPROVED = { ...PENDING, approval_status: 'approved' };

describe('a version', () => {
  it('is submitted, approved, published, deprecated with a notice, and published again by undoing that', async () => {
    const { project, asOwner, asSuperadmin } = await givenWorld();
    const theme_id = await givenTheme(project);
    const { themes } = asOwner.rpc;
    const replacement_version_id = await givenThemeVersion(project, { theme_id });
    const { id: version_id } = (await themes.submitVersion.mutate({ theme_id, version: '1.0' })).version;

    const { version: approved } = await asSuperadmin.rpc.themes.approveVersion.mutate({ version_id });
    const { version: published } = await themes.publishVersion.mutate({ version_id });
    const notice = { reason: 'Too slow.', replacement_version_id };
    const { version: deprecated } = await themes.deprecateWithNotice.mutate({ version_id, ...notice });
    await themes.deprecateVersion.mutate({ version_id });
    expect(await stored('theme_versions', version_id)).toMatchObject(deprecated);
    const { version: again } = await themes.undoDeprecation.mutate({ version_id });

    expect(approved).toMatchObject(APPROVED);
    expect(published).toMatchObject({ theme_status: 'published', published_at: expect.any(Date) });
    expect(deprecated).toMatchObject({
      theme_status: 'deprecated',
      deprecated_at: expect.any(Date),
      deprecation_reason: 'Too slow.',
      replacement_version_id,
    });
    expect(again).toMatchObject({
      theme_status: 'published',
      deprecated_at: null,
      deprecation_reason: null,
      replacement_version_id: null,
      published_at: published.published_at,
    });
  });

  it('that was never published is deprecated, and a draft again after undoing that', async () => {
    const { project, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project, APPROVED);
    const { themes } = asOwner.rpc;

    expect(await themes.deprecateVersion.mutate({ version_id })).toMatchObject({ theme_status: 'deprecated' });
    const { version } = await themes.undoDeprecation.mutate({ version_id });

    expect(version).toMatchObject({ theme_status: 'draft', deprecated_at: null });
  });

  it('that was rejected can be submitted again; 422 for any other that exists', async () => {
    const { project, asOwner, asSuperadmin } = await givenWorld();
    const choice = { theme_id: await givenTheme(project), version: '1.0' };
    const { themes } = asOwner.rpc;
    const { version } = await themes.submitVersion.mutate(choice);

    expect((await refusalOf(themes.submitVersion.mutate(choice))).errors).toEqual({
      version: ['version already exists.'],
    });
    await asSuperadmin.rpc.themes.rejectVersion.mutate({ version_id: version.id });
    const { version: again } = await themes.submitVersion.mutate(choice);

    expect(again).toMatchObject({ id: version.id, approval_status: 'pending' });
  });

  it.each([
    ['approve a rejected version', 'approveVersion', REJECTED],
    ['reject an approved version', 'rejectVersion', APPROVED],
    ['publish a pending version', 'publishVersion', PENDING],
    ['publish a deprecated version', 'publishVersion', { theme_status: 'deprecated', deprecated_at: new Date() }],
    ['deprecate a pending version', 'deprecateVersion', PENDING],
    ['deprecate a rejected version', 'deprecateWithNotice', REJECTED],
  ] as const)('400 to %s, and nothing changes', async (_, step, state) => {
    const { project, asSuperadmin } = await givenWorld();
    const version_id = await givenThemeVersion(project, state);

    expect(await refusalOf(asSuperadmin.rpc.themes[step].mutate({ version_id }))).toMatchObject({ status: 400 });
    expect(await stored('theme_versions', version_id)).toMatchObject(state);
  });

  it('422 for a replacement that is not another published version of the same theme', async () => {
    const { project, otherProject, asOwner } = await givenWorld();
    const theme_id = await givenTheme(project);
    const version_id = await givenThemeVersion(project, { theme_id });
    const replacements = [
      version_id,
      await givenThemeVersion(project),
      await givenThemeVersion(otherProject),
      await givenThemeVersion(project, { theme_id, ...APPROVED }),
      2147483647,
    ];

    for (const replacement_version_id of replacements) {
      const call = asOwner.rpc.themes.deprecateWithNotice.mutate({ version_id, replacement_version_id });
      expect((await refusalOf(call)).errors).toEqual({
        replacement_version_id: ['replacement_version_id is not another published version of this theme.'],
      });
    }
    expect(await stored('theme_versions', version_id)).toMatchObject({ theme_status: 'published' });
  });
});

describe('a superadmin', () => {
  it('403 in a project of another platform, whose themes are not listed; 200 without a project', async () => {
    const { project, otherProject, asSuperadmin } = await givenWorld();
    const version_id = await givenThemeVersion(project);
    const { themes } = asSuperadmin.in(otherProject.id).rpc;
    const caller = makeCaller((await testService()).url, await givenToken(await givenUser({ superadmin: true })));

    for (const call of [
      () => themes.deprecateVersion.mutate({ version_id }),
      () => themes.approveVersion.mutate({ version_id }),
      () => themes.create.mutate({ platform_id: project.platform_id, name: 'x' }),
    ])
      expect((await refusalOf(call())).status).toBe(403);
    expect((await themes.list.query({})).themes).toEqual([]);
    expect((await themes.listVersions.query({})).versions).toEqual([]);
    const deprecated = { version_id, theme_status: 'deprecated' };
    expect(await caller.rpc.themes.deprecateVersion.mutate({ version_id })).toEqual(deprecated);
  });
});

describe('lists', () => {
  it("contain only the themes and versions of the caller's platform", async () => {
    const { project, otherProject, asOwner } = await givenWorld();
    const own = await givenThemeVersion(project, PENDING);
    await givenThemeVersion(project);
    await givenThemeVersion(otherProject, PENDING);

    const { versions } = await asOwner.rpc.themes.listVersions.query({ approval_status: 'pending' });
    const { themes } = await asOwner.rpc.themes.list.query({});

    expect(versions.map(({ id }) => id)).toEqual([own]);
    expect(themes.map(({ platform_id }) => platform_id)).toEqual([project.platform_id, project.platform_id]);
  });
});

describe('an owner of several projects', () => {
  it('deprecates versions of the platform of any project that they own, whatever the default project is', async () => {
    const { asOwner, users, project } = await givenWorld();
    const [second, third] = [await givenProject(), await givenProject()];
    await givenMember(users.owner, second, 'owner');
    await givenMember(users.owner, third, 'member');
    const deprecate = async (place: TestProject, { rpc } = asOwner) => {
      const call = rpc.themes.deprecateVersion.mutate({ version_id: await givenThemeVersion(place) });
      return call.then(() => 200).catch(({ status }) => status);
    };
    const platformsOf = async ({ rpc } = asOwner) =>
      (await rpc.themes.list.query({})).themes.map(({ platform_id }) => platform_id);

    expect(await deprecate(second)).toBe(200);
    expect(await deprecate(second, asOwner.in(second.id))).toBe(200);
    expect(await deprecate(second, asOwner.in(project.id))).toBe(403);
    expect(await deprecate(third)).toBe(403);
    expect(await platformsOf()).toEqual(Array(3).fill(second.platform_id));
    expect(await platformsOf(asOwner.in(project.id))).toEqual([]);
  });
});
