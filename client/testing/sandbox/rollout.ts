import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '../../client.ts';

/** Brings release 2 of the demo's template to project 1, as the first of three stages. */
export async function beginRollout(url: string, token: string): Promise<void> {
  const admin = createClient({ url, token, fetch: fetchDirectly });
  // The demo data has two projects with the template.
  for (const name of ['Harbor Events', 'Harbor Jobs'])
    await admin.projects.create.mutate({ platform_id: 1, name, tools: ['onboarding'] });
  await admin.masterCards.update.mutate({ id: 1, title: 'Look around first' });
  const { release } = await admin.releases.publish.mutate({ board_id: 1, note: 'A clearer first step' });
  const stages = [{ projects: [1] }, { percent: 50 }, { percent: 100 }];
  const { rollout } = await admin.rollouts.plan.mutate({ release_id: release.id, stages });
  await admin.rollouts.start.mutate({ id: rollout.id });
  // The service works on rollouts in the background.
  while (!(await admin.rollouts.get.query({ id: rollout.id })).rollout.is_soaking) await pause(10);
}

/** The global `fetch` may use a proxy that the environment names. */
const fetchDirectly = (address: Parameters<typeof fetch>[0], { method = 'GET', headers, body }: RequestInit = {}) =>
  new Promise<Response>((resolve, reject) => {
    const sent = Object.fromEntries(new Headers(headers));
    const call = request(String(address), { agent: new Agent(), method, headers: sent }, (answer) => {
      const type = answer.headers['content-type'] ?? '';
      const init = { status: answer.statusCode ?? 502, headers: { 'content-type': type } };
      text(answer).then((received) => resolve(new Response(received, init)), reject);
    });
    call.on('error', reject).end(body);
  });
