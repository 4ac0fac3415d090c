import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '../../../client/client.ts';

/** Brings release 2 of the demo's template to project 1, as the first of three stages. */
export async function beginRollout(url: string, token: string): Promise<void> {
  const admin = createClient({ url, token });
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
