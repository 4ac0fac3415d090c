import { expect, it } from 'vitest';
import { givenDemoService } from '../harness/demo.ts';
import { removeProcesses, signIn } from '../harness/process.ts';

it('the demo data has a release of its master board, as publishing makes it, and projects that do not differ from it', async () => {
  const demo = await givenDemoService();
  const { releases, templates } = (await signIn(demo.url, 'admin@demo.test')).rpc;

  const { differences } = await releases.compare.query({ id: 1 });
  const { is_new, release } = await releases.publish.mutate({ board_id: 1 });
  const drift = await templates.drift.query({ board_id: 1 });

  expect(differences).toEqual([]);
  expect({ is_new, release }).toMatchObject({ is_new: false, release: { id: 1, rows_count: 8, projects_count: 2 } });
  const same = { release_number: 1, fields: [], rows_added: 0, rows_deleted: 0, rows_missing: 0 };
  expect(drift.projects).toMatchObject([same, same]);
  await demo.close();
  await removeProcesses();
});
