import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { assignments } from '../../server/domain/board/row.ts';
import type { PaymentProvider } from '../../server/payments/provider.ts';
import { testCheckout } from '../../server/payments/testCheckout.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { databaseUrl, givenService, testService } from '../harness/service.ts';
import {
  givenMember,
  givenProject,
  givenToken,
  givenTrial,
  givenUser,
  givenWorld,
  insert,
  stored,
  testDb,
} from '../harness/world.ts';

const UPGRADE = '/services/platforms/v1/subscriptions/upgrade-trial';
const choiceOf = (product: string, more: object = {}) => ({ product, plan: 'pro', period: 'month', ...more });

const checkoutsOf = async (subscription: number) =>
  query(
    await testDb(),
    sql<{ status: string; provider: string; session_id: string | null; price_cents: number; plan_id: number }>`
      select * from checkouts where subscription_id = ${subscription} order by id`,
  );

describe('POST …/subscriptions/upgrade-trial', () => {
  it('200 for a free plan, which is active at once and has no session', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);

    const answer = await asOwner.post(UPGRADE, choiceOf(product, { plan: 'free' }));

    expect(answer.body.data).toEqual({ checkout_url: expect.any(String), session_id: null, subscription_id: id });
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'free', paid_at: null });
    expect(await (await fetch(answer.body.data.checkout_url)).text()).toContain('Your plan is active');
  });

  it('200 with the same answer when the same free plan is chosen again, also after it was a trial again', async () => {
    const { project, asOwner, asSuperadmin } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const choose = async () => (await asOwner.post(UPGRADE, choiceOf(product, { plan: 'free' }))).body;
    const first = await choose();

    expect(await choose()).toEqual(first);
    await asSuperadmin.rpc.subscriptions.setTrial.mutate({ platform_id: project.platform_id, product, days: 3 });
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'trial' });

    expect(await choose()).toEqual(first);
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'free' });
    expect(await checkoutsOf(id)).toHaveLength(1);
  });

  it('200 for a paying plan after a free one, which ends when the other is paid', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const choose = async (more: object) => (await asOwner.post(UPGRADE, choiceOf(product, more))).body.data;
    const free = await choose({ plan: 'free' });

    const paying = await choose({});
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'free' });
    await fetch(`${paying.checkout_url}/pay`, { method: 'POST' });

    expect(await stored('subscriptions', id)).toMatchObject({ status: 'paid', paid_at: expect.any(Date) });
    expect(await (await fetch(free.checkout_url)).text()).toContain('has ended');
    expect((await asOwner.post(UPGRADE, choiceOf(product, { plan: 'free' }))).status).toBe(400);
  });

  it('is listed as expired when the trial is over, and as free with a free plan', async () => {
    const { project, asOwner } = await givenWorld();
    const { product } = await givenTrial(project, { trial_ends_at: new Date(0) });
    const list = async () => (await asOwner.rpc.subscriptions.list.query({})).subscriptions;

    expect(await list()).toMatchObject([{ status: 'expired', plan: null, paid_at: null }]);
    await asOwner.post(UPGRADE, choiceOf(product, { plan: 'free' }));
    expect(await list()).toMatchObject([{ status: 'free', plan: 'free', paid_at: null }]);
  });

  it('cancels open checkouts when a free plan is activated', async () => {
    const closed: string[] = [];
    const payments: PaymentProvider = { ...testCheckout, close: async (session) => void closed.push(session) };
    const { project, asOwner, asSuperadmin } = await givenWorld(await givenService({}, { payments }));
    const { id, product } = await givenTrial(project);
    const month = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;
    const year = (await asOwner.post(UPGRADE, choiceOf(product, { period: 'year' }))).body.data;
    await asSuperadmin.rpc.plans.set.mutate({ product, plan: 'pro', period: 'year', price_cents: 0 });

    const { body } = await asOwner.post(UPGRADE, choiceOf(product, { period: 'year' }));
    const pay = await fetch(`${month.checkout_url}/pay`, { method: 'POST' });

    expect(body.data).toMatchObject({ session_id: null, subscription_id: id });
    expect(await pay.text()).toContain('Nothing was paid');
    expect(closed.toSorted()).toEqual([month.session_id, year.session_id].toSorted());
    expect((await checkoutsOf(id)).map(({ status, price_cents }) => [status, price_cents])).toEqual([
      ['cancelled', 1900],
      ['cancelled', 19_000],
      ['paid', 0],
    ]);
  });

  it('returns the open checkout again for the same choice, and a new one for another', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const upgrade = async (more: object = {}) => (await asOwner.post(UPGRADE, choiceOf(product, more))).body.data;

    const first = await upgrade();

    expect(await upgrade()).toEqual(first);
    expect((await upgrade({ period: 'year' })).session_id).not.toBe(first.session_id);
    expect(await checkoutsOf(id)).toHaveLength(2);
  });

  it('opens one checkout for ten concurrent calls', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);

    const answers = await Promise.all(Array.from({ length: 10 }, () => asOwner.post(UPGRADE, choiceOf(product))));

    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(new Set(answers.map(({ body }) => body.data.checkout_url)).size).toBe(1);
    expect(await checkoutsOf(id)).toHaveLength(1);
  });

  it('keeps a checkout open for 23 hours', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    await asOwner.post(UPGRADE, choiceOf(product));

    const [checkout] = await query(
      await testDb(),
      sql<{ hours: number }>`
        select extract(epoch from expires_at - created_at)::int / 3600 as hours from checkouts where subscription_id = ${id}`,
    );

    expect(checkout).toEqual({ hours: 23 });
  });

  it('opens a new checkout when the old one has expired', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const first = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;
    await query(await testDb(), sql`update checkouts set expires_at = now() where subscription_id = ${id}`);

    const second = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;

    expect(second.session_id).not.toBe(first.session_id);
    expect((await checkoutsOf(id)).map(({ status }) => status)).toEqual(['expired', 'open']);
    expect(await (await fetch(first.checkout_url)).text()).toContain('Checkout expired');
  });

  it('keeps the price that the checkout was opened with', async () => {
    const { project, asOwner, asSuperadmin } = await givenWorld();
    const { product } = await givenTrial(project);
    const { checkout_url } = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;

    await asSuperadmin.rpc.plans.set.mutate({ product, plan: 'pro', period: 'month', price_cents: 99_900 });

    expect(await (await fetch(checkout_url)).text()).toContain('€19.00');
  });

  it('400 for a subscription that is already paid', async () => {
    const { project, asOwner } = await givenWorld();
    const { product } = await givenTrial(project);
    const { body } = await asOwner.post(UPGRADE, choiceOf(product));
    await fetch(`${body.data.checkout_url}/pay`, { method: 'POST' });

    const answer = await asOwner.post(UPGRADE, choiceOf(product));

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message: 'This subscription is already paid.', data: [] });
  });

  it('200 for superadmin_billing in any chosen project; 403 for other operations there', async () => {
    const { project } = await givenWorld();
    const { product } = await givenTrial(project);
    const biller = await givenUser({ superadmin_billing: true });
    const caller = makeCaller((await testService()).url, await givenToken(biller));

    expect((await caller.in(project.id).post(UPGRADE, choiceOf(product))).status).toBe(200);
    expect((await caller.post(UPGRADE, choiceOf(product))).status).toBe(403);
    expect((await caller.in(project.id).post('/services/operations/v1/operations/boards/list')).status).toBe(403);
  });

  it('500 with the documented body while the provider is down, nothing changes, and the next call works', async () => {
    const provider = { isDown: true };
    const payments: PaymentProvider = {
      name: 'test',
      open: async ({ reference, returnUrl }) => {
        if (provider.isDown) throw new Error('connect ECONNREFUSED: our secret address');
        return { session_id: `test_${reference}`, checkout_url: returnUrl };
      },
      close: async () => {},
    };
    const { project, asOwner } = await givenWorld(await givenService({}, { payments }));
    const { id, product } = await givenTrial(project);
    const before = await stored('subscriptions', id);

    const answer = await asOwner.post(UPGRADE, choiceOf(product));
    const overRpc = await refusalOf(asOwner.rpc.subscriptions.upgradeTrial.mutate(choiceOf(product) as any));

    const message = 'Something went wrong on our side. Try again later.';
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({ error: true, message, data: [] });
    expect(overRpc).toEqual({ status: 500, message });
    expect(await stored('subscriptions', id)).toEqual(before);
    provider.isDown = false;
    expect((await asOwner.post(UPGRADE, choiceOf(product))).status).toBe(200);
  });

  it('400 if another checkout is paid while this one is opened, and this one is cancelled', async () => {
    const closed: string[] = [];
    let meanwhile = async () => {};
    const payments: PaymentProvider = {
      ...testCheckout,
      open: async (order) => {
        await meanwhile();
        return testCheckout.open(order);
      },
      close: async (session) => void closed.push(session),
    };
    const { project, asOwner } = await givenWorld(await givenService({}, { payments }));
    const { id, product } = await givenTrial(project);
    const { checkout_url } = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;
    meanwhile = async () => void (await fetch(`${checkout_url}/pay`, { method: 'POST' }));

    const answer = await asOwner.post(UPGRADE, choiceOf(product, { period: 'year' }));

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message: 'This subscription is already paid.', data: [] });
    const [paid, late] = await checkoutsOf(id);
    expect([paid!.status, late!.status]).toEqual(['paid', 'cancelled']);
    expect(closed).toEqual([late!.session_id]);
  });

  it('500 if the provider fails, but the checkout that another node opened stays', async () => {
    const payments: PaymentProvider = {
      ...testCheckout,
      open: async ({ reference }) => {
        const opened = { session_id: `test_${reference}`, checkout_url: 'https://pay.test/1' };
        await query(await testDb(), sql`update checkouts set ${assignments(opened)} where reference = ${reference}`);
        throw new Error('Another request with the same key is under way.');
      },
    };
    const { project, asOwner } = await givenWorld(await givenService({}, { payments }));
    const { product } = await givenTrial(project);

    const failed = await asOwner.post(UPGRADE, choiceOf(product));
    const { body } = await asOwner.post(UPGRADE, choiceOf(product));

    expect(failed.status).toBe(500);
    expect(body.data).toMatchObject({ checkout_url: 'https://pay.test/1' });
  });
});

describe('without payments', () => {
  const givenNoPayments = async () => {
    const service = await givenService({ TEST_CHECKOUT: 'off' });
    const { project, asOwner } = await givenWorld(service);
    return { ...service, asOwner, ...(await givenTrial(project)) };
  };

  it('500 with the documented body for a paid plan, and nothing changes', async () => {
    const { asOwner, id, product, logged } = await givenNoPayments();
    const before = await stored('subscriptions', id);

    const answer = await asOwner.post(UPGRADE, choiceOf(product));
    const overRpc = await refusalOf(asOwner.rpc.subscriptions.upgradeTrial.mutate(choiceOf(product) as any));

    const message = 'Something went wrong on our side. Try again later.';
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({ error: true, message, data: [] });
    expect(overRpc).toEqual({ status: 500, message });
    expect(await stored('subscriptions', id)).toEqual(before);
    expect(await checkoutsOf(id)).toEqual([]);
    expect(JSON.stringify(logged)).toContain('Payments are not set up');
  });

  it('200 for a free plan', async () => {
    const { asOwner, id, product } = await givenNoPayments();

    const answer = await asOwner.post(UPGRADE, choiceOf(product, { plan: 'free' }));

    expect(answer).toMatchObject({ status: 200, body: { data: { session_id: null, subscription_id: id } } });
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'free' });
    expect(await checkoutsOf(id)).toMatchObject([{ status: 'paid', provider: 'none' }]);
    expect(await (await fetch(answer.body.data.checkout_url)).text()).toContain('Your plan is active');
  });

  it('404 for the buttons of an earlier test checkout, and its page says that it is too late', async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const { checkout_url } = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;
    const { url } = await givenNoPayments();
    const address = url + new URL(checkout_url).pathname;

    const page = await (await fetch(address)).text();
    const pressed = ['pay', 'cancel'].map((button) => fetch(`${address}/${button}`, { method: 'POST' }));

    expect((await Promise.all(pressed)).map(({ status }) => status)).toEqual([404, 404]);
    expect(page).toContain('Checkout expired');
    expect(page).not.toContain('<form');
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'trial' });
    expect(await checkoutsOf(id)).toMatchObject([{ status: 'open' }]);
  });

  it('500 by default on a server database, 200 on the embedded one', async () => {
    const { project, asOwner } = await givenWorld(await givenService({ TEST_CHECKOUT: '' }));
    const { product } = await givenTrial(project);

    expect((await asOwner.post(UPGRADE, choiceOf(product))).status).toBe(databaseUrl ? 500 : 200);
  });
});

describe('the test checkout', () => {
  const givenCheckout = async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const { checkout_url } = (await asOwner.post(UPGRADE, choiceOf(product))).body.data;
    const press = (button: 'pay' | 'cancel') => fetch(`${checkout_url}/${button}`, { method: 'POST' });
    const page = async () => (await fetch(checkout_url)).text();
    return { asOwner, id, product, checkout_url, press, page };
  };

  it('shows product, plan, price and period, and can be paid only once', async () => {
    const { asOwner, id, product, press, page } = await givenCheckout();
    const shown = await page();
    for (const part of [product, 'pro', '1 month', '€19.00', 'Pay', 'Cancel']) expect(shown).toContain(part);

    const paid = await press('pay');
    const before = await stored('subscriptions', id);
    await press('pay');
    await press('cancel');

    expect(paid.status).toBe(200);
    expect(await paid.text()).toContain('Payment received');
    expect(before).toMatchObject({ status: 'paid', plan_id: expect.any(Number), paid_at: expect.any(Date) });
    expect(await stored('subscriptions', id)).toEqual(before);
    expect((await asOwner.post(UPGRADE, choiceOf(product))).status).toBe(400);
  });

  it('can be cancelled, but not paid after that, and the next call opens another', async () => {
    const { asOwner, id, product, press, page } = await givenCheckout();

    await press('cancel');
    await press('pay');

    expect(await page()).toContain('Nothing was paid');
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'trial' });
    expect((await asOwner.post(UPGRADE, choiceOf(product))).status).toBe(200);
    expect((await checkoutsOf(id)).map(({ status }) => status)).toEqual(['cancelled', 'open']);
  });

  it('is either paid or cancelled when buttons are pressed at once; paying cancels other open checkouts', async () => {
    const { asOwner, id, product, press } = await givenCheckout();
    await asOwner.post(UPGRADE, choiceOf(product, { period: 'year' }));

    await Promise.all([press('pay'), press('cancel'), press('pay'), press('pay')]);

    const statuses = (await checkoutsOf(id)).map(({ status }) => status);
    expect([
      ['paid', 'cancelled'],
      ['cancelled', 'open'],
    ]).toContainEqual(statuses);
  });

  it('keeps its reference out of the log, since anyone who knows it can pay', async () => {
    const { logged } = await testService();
    const { page, checkout_url } = await givenCheckout();

    await page();

    expect(logged).toContainEqual(expect.objectContaining({ path: '/checkout/:reference', status: 200 }));
    expect(JSON.stringify(logged)).not.toContain(checkout_url.split('/').at(-1));
  });

  it('is the only one paid when two checkouts of a subscription are paid at once', async () => {
    const { asOwner, id, product, press } = await givenCheckout();
    const year = (await asOwner.post(UPGRADE, choiceOf(product, { period: 'year' }))).body.data;
    const pressYear = () => fetch(`${year.checkout_url}/pay`, { method: 'POST' });

    await Promise.all([press('pay'), pressYear(), press('pay'), pressYear()]);

    expect((await checkoutsOf(id)).map(({ status }) => status).toSorted()).toEqual(['cancelled', 'paid']);
  });

  it('404 for an unknown checkout, and markup is escaped', async () => {
    const { url } = await testService();
    for (const path of ['x', '5f364aca-a792-4f75-8861-b325bd5212ed', '%3Cscript%3E', "'--"]) {
      const response = await fetch(`${url}/checkout/${path}`);
      expect(response.status, path).toBe(404);
      expect(await response.text()).not.toContain('<script');
    }
    const { project, asOwner, asSuperadmin } = await givenWorld();
    const { product } = await givenTrial(project);
    const plan = '<img src=x onerror=alert(1)>';
    await asSuperadmin.rpc.plans.set.mutate({ product, plan, period: 'month', price_cents: 1 });
    const { checkout_url } = (await asOwner.post(UPGRADE, choiceOf(product, { plan }))).body.data;

    const shown = await fetch(checkout_url);

    expect(await shown.text()).not.toContain('<img');
    expect(shown.headers.get('cache-control')).toBe('no-store');
  });
});

describe('who pays can find out what for', () => {
  it('owners list the subscriptions of their platforms and the plans that can be selected', async () => {
    const { asOwner, users, project, otherProject } = await givenWorld();
    const { id, product } = await givenTrial(project);
    await givenTrial(otherProject);
    const second = await givenProject();
    await givenMember(users.owner, second, 'owner');
    const { id: secondId } = await givenTrial(second);
    await insert('plans', { product, plan: 'old', period: 'month', price_cents: 1, is_active: false });

    const { subscriptions } = await asOwner.rpc.subscriptions.list.query({});
    const { plans } = await asOwner.rpc.plans.list.query({ product });

    expect(subscriptions.map((found) => [found.id, found.project_id])).toEqual([
      [id, project.id],
      [secondId, second.id],
    ]);
    expect(plans.map(({ plan }) => plan)).toEqual(['free', 'pro', 'pro']);
    expect((await asOwner.in(second.id).rpc.subscriptions.list.query({})).subscriptions).toMatchObject([
      { id: secondId },
    ]);
    expect(
      (await asOwner.rpc.subscriptions.list.query({ platform_id: otherProject.platform_id })).subscriptions,
    ).toEqual([]);
  });

  it('a user who handles billing lists every subscription, with a project to select, and upgrades it', async () => {
    const { project } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const { url } = await testService();
    const biller = makeCaller(url, await givenToken(await givenUser({ superadmin_billing: true })));
    const choice = choiceOf(product);

    const [found] = (await biller.rpc.subscriptions.list.query({ platform_id: project.platform_id })).subscriptions;

    expect(found).toMatchObject({ id, project_id: project.id, status: 'trial' });
    expect((await biller.post(UPGRADE, choice)).status).toBe(403);
    expect((await biller.in(found!.project_id!).post(UPGRADE, choice)).status).toBe(200);
  });

  it('a superadmin who selects a project lists those of its platform', async () => {
    const { asSuperadmin, project, otherProject } = await givenWorld();
    const { id } = await givenTrial(project);
    await givenTrial(otherProject);

    const { subscriptions } = await asSuperadmin.in(project.id).rpc.subscriptions.list.query({});

    expect(subscriptions).toMatchObject([{ id, project_id: project.id }]);
  });
});
