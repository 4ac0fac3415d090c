import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { type Db, query } from '../../server/database/query.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';

/** Receivers of webhooks, each at its own path of one server. */
export async function startReceivers(onArrival: (path: string, response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    request.resume();
    onArrival(request.url ?? '', response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

/** Webhooks that get the events from now on, or all events of before. Replaces earlier ones. */
export async function setWebhooks(
  db: Db,
  jwtSecret: string,
  wanted: { project: number; url: string; hasAllEvents?: boolean }[],
): Promise<void> {
  const secretBox = makeSecretBox([jwtSecret]);
  await query(db, sql`delete from webhooks`);
  for (const [at, { project, url, hasAllEvents = false }] of wanted.entries()) {
    const after = hasAllEvents ? sql`'0'::xid8` : sql`pg_snapshot_xmax(pg_current_snapshot())::text::xid8`;
    await query(
      db,
      sql`
        insert into webhooks (id, project_id, url, secret, after_transaction, after_event)
        values (${at + 1}, ${project}, ${url}, ${secretBox.seal(SECRET, at + 1, 'webhook')}, ${after}, 0)`,
    );
  }
}

export async function createCard(serviceUrl: string, token: string): Promise<void> {
  const response = await fetch(`${serviceUrl}/api/services/operations/v1/operations/cards/create`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ title: 'A change' }),
  });
  if (response.status !== 201) throw new Error(`${response.status} instead of 201.`);
}
