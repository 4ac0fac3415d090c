import { describe, expect, it } from 'vitest';
import { makeCaller, refusalOf } from './harness/caller.ts';
import { testService } from './harness/service.ts';
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
} from './harness/world.ts';

const DEPRECATE = '/services/websites/v1/themes/versions/deprecate';
const PENDING = { approval_status: 'pending', theme_status: 'draft', published_at: null };
const REJECTED = { approval_status: 'rejected', theme_status: 'draft', published_at: null };
const APPROVED = { approval_status: 'approved', theme_status: 'draft', published_at: null };

describe('POST …/themes/versions/deprecate', () => {
  it('200 for an approved version, with its id as text', async () => {
    const { project, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project);

    const answer = await asOwner.post(DEPRECATE, { version_id });

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      error: false,
      message: 'Theme version deprecated.',
      data: { version_id: String(version_id), theme_status: 'deprecated' },
    });
    expect(await stored('theme_versions', version_id)).toMatchObject({
      theme_status: 'deprecated',
      approval_status: 'approved',
      deprecated_at: expect.any(Date),
    });
  });

  it('200 for an approved version that was never published', async () => {
    const { project, asOwner } = await givenWorld();

    const answer = await asOwner.post(DEPRECATE, { version_id: await givenThemeVersion(project, APPROVED) });

    expect(answer.body.data).toMatchObject({ theme_status: 'deprecated' });
  });

  it('200 for a version that is already deprecated, and nothing changes', async () => {
    const { project, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project);
    await asOwner.rpc.themes.deprecateWithNotice.mutate({ version_id, reason: 'Too slow.' });
    const before = await stored('theme_versions', version_id);

    const answer = await asOwner.post(DEPRECATE, { version_id });

    expect(answer).toMatchObject({ status: 200, body: { data: { theme_status: 'deprecated' } } });
    expect(await stored('theme_versions', version_id)).toEqual(before);
  });

  it.each([
    ['waits for approval', PENDING],
    ['was rejected', REJECTED],
  ])('400 while the version %s, and nothing changes', async (_, state) => {
    const { project, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project, state);

    const answer = await asOwner.post(DEPRECATE, { version_id });

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message: 'Only an approved version can be deprecated.', data: [] });
    expect(await stored('theme_versions', version_id)).toMatchObject(state);
  });

  it('403 for a member and for an owner of another platform; 404 for an unknown version', async () => {
    const { project, asMember, asOutsider, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project);

    expect((await asMember.post(DEPRECATE, { version_id })).body).toEqual({
      error: true,
      message: 'This requires the role owner; yours in this project is member.',
    });
    expect((await asOutsider.post(DEPRECATE, { version_id })).body).toEqual({
      error: true,
      message: 'This theme belongs to another platform.',
    });
    expect(await asOwner.post(DEPRECATE, { version_id: 2147483647 })).toMatchObject({
      status: 404,
      body: { error: true, message: 'There is no such theme version.', data: [] },
    });
    expect(await stored('theme_versions', version_id)).toMatchObject({ theme_status: 'published' });
  });

  it('403 for a superadmin who selects a project of another platform; its themes are not listed', async () => {
    const { project, otherProject, asSuperadmin } = await givenWorld();
    const version_id = await givenThemeVersion(project);
    const { rpc } = asSuperadmin.in(otherProject.id);
    const change = { platform_id: project.platform_id, name: 'x' };

    for (const call of [
      rpc.themes.deprecateVersion.mutate({ version_id }),
      rpc.themes.approveVersion.mutate({ version_id }),
      rpc.themes.create.mutate(change),
    ])
      expect((await refusalOf(call)).status).toBe(403);
    expect((await rpc.themes.list.query({})).themes).toEqual([]);
    expect((await rpc.themes.listVersions.query({})).versions).toEqual([]);
    expect((await asSuperadmin.in(project.id).post(DEPRECATE, { version_id })).status).toBe(200);
  });

  it('200 for a superadmin without a project', async () => {
    const { project } = await givenWorld();
    const superadmin = await givenUser({ superadmin: true });
    const caller = makeCaller((await testService()).url, await givenToken(superadmin));

    const answer = await caller.post(DEPRECATE, { version_id: await givenThemeVersion(project) });

    expect(answer.status).toBe(200);
  });

  it.each([[{}], [{ version_id: '1' }], [{ version_id: 0 }], [{ version_id: 2147483648 }], [{ version_id: null }]])(
    '422 for %j',
    async (body) => {
      const { asOwner } = await givenWorld();

      expect((await asOwner.post(DEPRECATE, body)).body.errors).toHaveProperty('version_id');
    },
  );

  it('200 for each of ten concurrent calls', async () => {
    const { project, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project);

    const answers = await Promise.all(Array.from({ length: 10 }, () => asOwner.post(DEPRECATE, { version_id })));

    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  });
});

describe('a version', () => {
  it('is submitted, approved, published, deprecated with a notice, and published again by undoing that', async () => {
    const { project, asOwner, asSuperadmin } = await givenWorld();
    const theme_id = await givenTheme(project);
    const { themes } = asOwner.rpc;
    const { id: replacement_version_id } = (await themes.submitVersion.mutate({ theme_id, version: '2.0' })).version;
    const { id: version_id } = (await themes.submitVersion.mutate({ theme_id, version: '1.0' })).version;
    await asSuperadmin.rpc.themes.approveVersion.mutate({ version_id: replacement_version_id });
    await themes.publishVersion.mutate({ version_id: replacement_version_id });

    const { version: approved } = await asSuperadmin.rpc.themes.approveVersion.mutate({ version_id });
    const { version: published } = await themes.publishVersion.mutate({ version_id });
    const notice = { reason: 'Too slow.', replacement_version_id };
    const { version: deprecated } = await themes.deprecateWithNotice.mutate({ version_id, ...notice });
    const { version: again } = await themes.undoDeprecation.mutate({ version_id });

    expect(approved).toMatchObject({ approval_status: 'approved', theme_status: 'draft', published_at: null });
    expect(published).toMatchObject({ theme_status: 'published', published_at: expect.any(Date) });
    expect(deprecated).toMatchObject({
      theme_status: 'deprecated',
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

  it('that was never published is a draft again after undoing its deprecation', async () => {
    const { project, asOwner } = await givenWorld();
    const version_id = await givenThemeVersion(project, APPROVED);
    await asOwner.post(DEPRECATE, { version_id });

    const { version } = await asOwner.rpc.themes.undoDeprecation.mutate({ version_id });

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
    [
      'publish a deprecated version',
      'publishVersion',
      { approval_status: 'approved', theme_status: 'deprecated', deprecated_at: new Date() },
    ],
  ] as const)('400 to %s', async (_, step, state) => {
    const { project, asSuperadmin } = await givenWorld();
    const version_id = await givenThemeVersion(project, state);

    expect(await refusalOf(asSuperadmin.rpc.themes[step].mutate({ version_id }))).toMatchObject({ status: 400 });
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
    const deprecate = async (place: TestProject, chosen?: number) =>
      (await (chosen ? asOwner.in(chosen) : asOwner).post(DEPRECATE, { version_id: await givenThemeVersion(place) }))
        .status;

    expect(await deprecate(second)).toBe(200);
    expect(await deprecate(second, second.id)).toBe(200);
    expect(await deprecate(second, project.id)).toBe(403);
    expect(await deprecate(third)).toBe(403);
    expect((await asOwner.rpc.themes.list.query({})).themes.map(({ platform_id }) => platform_id)).toEqual([
      second.platform_id,
      second.platform_id,
      second.platform_id,
    ]);
    expect((await asOwner.in(project.id).rpc.themes.list.query({})).themes).toEqual([]);
  });
});
