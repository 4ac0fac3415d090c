import { describe, expect, it } from 'vitest';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { errorOf } from '../harness/client.ts';
import { testService } from '../harness/service.ts';
import { givenProject, givenServiceAccount, givenToken, givenWorld, PASSWORD, stored } from '../harness/world.ts';

const signIn = async (email: string, password = PASSWORD) =>
  makeCaller((await testService()).url).post('/v1/authenticate', { email, password });

describe('POST …/users/create', () => {
  it('201 for a service without e-mail address and password, and its keys work', async () => {
    const { asSuperadmin, project } = await givenWorld();

    const { user } = await asSuperadmin.rpc.users.create.mutate({ name: 'Import', kind: 'service' });
    const added = await asSuperadmin
      .in(project.id)
      .post('/services/platforms/v1/members/add', { email: user.email, role: 'member' });
    const { secret } = await asSuperadmin.rpc.keys.create.mutate({
      user_id: user.id,
      name: 'x',
      scopes: ['tags:write'],
    });

    expect(user).toMatchObject({ kind: 'service', has_second_factor: false });
    expect(user.email).toMatch(/^service-[\da-f]{12}@service\.invalid$/);
    expect(added.status).toBe(201);
    const { rpc } = makeCaller((await testService()).url, secret);
    expect((await rpc.tags.create.mutate({ name: 'A tag' })).tag.project_id).toBe(project.id);
  });

  it('422 for an update of a service with an e-mail address, and nothing changes', async () => {
    const { asSuperadmin } = await givenWorld();
    const { id } = await givenServiceAccount();
    const before = await stored('users', id);

    // Over REST: the client sends an idempotency key, which makes every call one transaction.
    const input = { id, name: 'Renamed', email: 'x@example.test' };
    const { status, body } = await asSuperadmin.post('/services/platforms/v1/users/update', input);

    expect({ status, errors: body.errors }).toEqual({ status: 422, errors: { email: ['email is only for persons.'] } });
    expect(await stored('users', id)).toEqual(before);
  });

  it('422 for a service with an e-mail address or password, and for a person without', async () => {
    const { asSuperadmin } = await givenWorld();
    const create = async (input: object) =>
      (await asSuperadmin.post('/services/platforms/v1/users/create', { name: 'x', ...input })).body.errors;
    const account = { email: 'x@example.test', password: PASSWORD };

    expect(await create({ kind: 'service', ...account })).toEqual({
      email: ['email is only for persons.'],
      password: ['password is only for persons.'],
    });
    for (const kind of [undefined, 'person'])
      expect(await create({ kind })).toEqual({
        email: ['email is required.'],
        password: ['password is required.'],
      });
    expect(await create({ kind: 'robot', ...account })).toEqual({ kind: ['kind must be one of person, service.'] });
  });
});

describe('a service', () => {
  it('401 when it signs in, as for a wrong password', async () => {
    const { email } = await givenServiceAccount();

    const [ofService, ofNobody] = [await signIn(email), await signIn('nobody@example.test')];

    expect(ofService).toMatchObject({ status: 401, body: ofNobody.body });
    expect(ofService.headers.get('x-error-reason')).toBe('wrong_credentials');
  });

  it('422 for a password or an e-mail address, and nothing changes; other fields can be set', async () => {
    const { asSuperadmin } = await givenWorld();
    const { id } = await givenServiceAccount();
    const before = await stored('users', id);
    const update = (input: object) => asSuperadmin.rpc.users.update.mutate({ id, ...input });

    expect(await refusalOf(update({ name: 'y', password: PASSWORD }))).toMatchObject({
      status: 422,
      errors: { password: ['password is only for persons.'] },
    });
    expect(await refusalOf(update({ name: 'y', email: 'y@example.test' }))).toMatchObject({
      status: 422,
      errors: { email: ['email is only for persons.'] },
    });
    expect(await stored('users', id)).toEqual(before);
    const { id: default_project_id } = await givenProject();
    expect((await update({ name: 'y', default_project_id })).user).toMatchObject({ name: 'y', default_project_id });
  });

  it('403 for its password and second factor', async () => {
    const { url } = await testService();
    // No procedure opens a session for a service; the command line acts as one with --as.
    const { account } = makeCaller(url, await givenToken(await givenServiceAccount())).rpc;
    const [password, code] = [PASSWORD, '123456'];

    for (const call of [
      account.changePassword.mutate({ password, new_password: 'another long sentence' }),
      account.startSecondFactor.mutate({ password }),
      account.dropSecondFactor.mutate({ password, code }),
      account.renewRecoveryCodes.mutate({ password, code }),
    ])
      expect(await errorOf(call)).toMatchObject({ status: 403, reason: 'no_password' });
    expect(await errorOf(account.confirmSecondFactor.mutate({ code }))).toMatchObject({ status: 400 });
  });
});
