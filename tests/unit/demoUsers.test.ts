import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestCaller } from '../harness/caller.ts';
import { givenDemoService } from '../harness/demo.ts';
import { removeProcesses, signIn } from '../harness/process.ts';

const USERS = '/services/platforms/v1/users/update';

describe('GET /pages/demo-users.json', () => {
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  let asAdmin: TestCaller;
  beforeAll(async () => {
    demo = await givenDemoService();
    asAdmin = await signIn(demo.url, 'admin@demo.test');
  });
  afterAll(async () => {
    await demo.close();
    await removeProcesses();
  });

  const names = async () => {
    const response = await fetch(`${demo.url}/pages/demo-users.json`);
    expect(response.headers.get('cache-control')).toBe('no-store');
    return ((await response.json()) as { name: string }[]).map(({ name }) => name);
  };

  it('lists the demo users who can sign in with the public password alone', async () => {
    expect(await names()).toEqual(['Admin', 'Owner', 'Member', 'Viewer', 'Outsider']);

    await asAdmin.post(USERS, { id: 4, password: 'another long sentence' });
    await asAdmin.post(USERS, { id: 5, is_active: false });

    expect(await names()).toEqual(['Admin', 'Owner', 'Member']);
  });
});
