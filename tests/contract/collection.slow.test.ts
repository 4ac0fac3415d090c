import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { type Collection, collectionOf } from '../../server/api/openapi/collection.ts';
import { openApiDocument, operationsOf } from '../../server/api/openapi/document.ts';
import { document } from '../../server/contract/violations.ts';
import { givenDemoService } from '../harness/demo.ts';
import { givenDirectory } from '../harness/process.ts';

type Request = Collection['item'][number]['item'][number]['request'];

const collection: Collection = JSON.parse(JSON.stringify(collectionOf(openApiDocument())));

/** Sends a request the way that Postman does. */
async function send({ method, auth, header, url, body }: Request, collectionAuth: object, variables: object) {
  const filled = JSON.parse(
    Object.entries(variables).reduce(
      (text, [name, value]) => text.replaceAll(`{{${name}}}`, value),
      JSON.stringify({ raw: url.raw, auth: auth ?? collectionAuth }),
    ),
  );
  const response = await fetch(filled.raw, {
    method,
    headers: {
      ...Object.fromEntries(header.filter(({ disabled }) => !disabled).map(({ key, value }) => [key, value])),
      ...(filled.auth.type === 'bearer' && { authorization: `Bearer ${filled.auth.bearer[0].value}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    body: body?.raw,
  });
  return {
    status: response.status,
    ...((await response.json()) as { message: string; data: { token: string; secret?: string } }),
  };
}

/** Examples that need a state other than that of the demo data after the others. */
const NOT_IN_THIS_ORDER = [
  // End the session, or the user.
  ...['/account/sign-out', '/account/sign-out-everywhere', '/account/change-password'],
  ...['/account/erase', '/users/erase', '/users/deactivate'],
  // Need a second factor, an invitation or a membership of the user.
  ...['/account/confirm-second-factor', '/account/drop-second-factor', '/account/renew-recovery-codes'],
  ...['/account/accept-invitation', '/account/decline-invitation', '/members/leave'],
  // Need the link of a mail, or one that failed.
  '/mails/retry',
  ...['/account/reset-password', '/account/confirm-address', '/account/show-invitation', '/account/sign-up'],
  // Need an identity provider.
  ...['/auth/start-sso', '/auth/finish-sso', '/auth/exchange', '/account/unlink-identity'],
  // Need a service account.
  ...['/identity-rules/create', '/identity-rules/update', '/identity-rules/delete'],
  // The version is approved by then.
  '/versions/reject',
  // The rollout is aborted by then.
  ...['/rollouts/advance', '/rollouts/retry-failed'],
  // The demo data has no events, whose ids depend on what was called before.
  ...['/webhooks/redeliver', '/webhooks/resend', '/webhooks/skip'],
];

/** Deletions run last and in reverse order, so that children are deleted before their parents. */
const isDeleting = ({ url }: Request) => url.raw.endsWith('/delete');

describe('the collection', () => {
  it('has a folder for each area and a request for each operation, with an example for each status', () => {
    const { item: folders } = collection;

    expect(folders.map(({ name }) => name)).toEqual(document.tags.map(({ name }) => name));
    const items = folders.flatMap(({ item }) => item);
    for (const { path, ...post } of operationsOf(document)) {
      const item = items.find(({ request }) => request.url.raw === `{{baseUrl}}${path}`);
      expect(item, path).toMatchObject({ name: post.summary });
      expect(item!.response.length).toBe(Object.keys(post.responses).length);
    }
  });

  it('is written to a file, whose directory may be missing', async () => {
    const file = join(await givenDirectory(), 'made/collection.json');
    const { argv } = process;
    process.argv = ['node', 'collection.ts', file];
    const printed: unknown[] = [];
    vi.spyOn(console, 'log').mockImplementation((line) => void printed.push(line));

    // As a program of its own: docs/rest.md.
    await import('../../server/cli/collection.ts').finally(() => {
      process.argv = argv;
      vi.restoreAllMocks();
    });

    expect(printed).toEqual([`Wrote ${file}`]);
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(collection);
  });

  it('signs in per folder, with a user who may call what is in it', () => {
    const users = Object.fromEntries(collection.item.map(({ name, item: [first] }) => [name, first!.name]));

    expect(users).toMatchObject({
      Authentication: 'Sign in',
      Operations: 'Sign in as member@demo.test',
      'Master templates': 'Sign in as admin@demo.test',
      Platform: 'Sign in as owner@demo.test',
      Boards: 'Sign in as member@demo.test',
      Users: 'Sign in as admin@demo.test',
    });
  });

  it('has examples that work unchanged on the demo data', async () => {
    const { item: folders, auth } = collection;
    const { url, close } = await givenDemoService();

    const requests = folders.flatMap(({ item: [signIn, ...others] }) =>
      others
        .filter(({ request }) => !NOT_IN_THIS_ORDER.some((path) => request.url.raw.endsWith(path)))
        .map(({ request }) => ({ signIn: signIn!.request, request })),
    );
    const isDeletion = ({ request }: (typeof requests)[number]) => isDeleting(request);
    const sorted = [...requests.filter((one) => !isDeletion(one)), ...requests.filter(isDeletion).reverse()];
    let user: Request | undefined;
    let token = '';
    let key = '';
    for (const { signIn, request } of sorted) {
      if (user !== signIn) ({ token } = (await send(signIn, auth, { baseUrl: `${url}/api` })).data);
      user = signIn;
      const { status, message, data } = await send(request, auth, { baseUrl: `${url}/api`, token, key });
      if (request.url.raw.endsWith('/keys/create')) key = data.secret!;
      expect([200, 201], `${request.url.raw} ${status} ${message}`).toContain(status);
    }
    await close();
  });
});
