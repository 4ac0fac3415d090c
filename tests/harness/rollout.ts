import { sql } from 'kysely';
import { query } from '../../server/database/query.ts';
import { stepRollout } from '../../server/domain/template/rolloutStep.ts';
import type { Stage } from '../../shared/rollout.ts';
import { sync, type Template } from './template.ts';
import { testDb } from './world.ts';

export const ALL: Stage[] = [{ percent: 100 }];

/** Does all steps that are due, as the background work of a node does. */
export async function workOffRollouts(rowsPerStep = 100): Promise<void> {
  const db = await testDb();
  while (await stepRollout(db, rowsPerStep));
}

/** Publishes the draft, and returns the id of the release. */
export async function publish({ asSuperadmin, board }: Template, note = 'Why'): Promise<number> {
  return (await asSuperadmin.rpc.releases.publish.mutate({ board_id: board, note })).release.id;
}

export type PlanOptions = { stages?: Stage[]; overwrite?: string[]; max_failed?: number; max_conflicts?: number };

/** Publishes the draft and plans its rollout. */
export async function plan(template: Template, options: PlanOptions = {}): Promise<number> {
  const release_id = await publish(template);
  const input = { release_id, stages: ALL, ...options } as never;
  return (await template.asSuperadmin.rpc.rollouts.plan.mutate(input)).rollout.id;
}

/** Publishes the draft, and rolls it out to all projects. */
export async function rollOut(template: Template, options: PlanOptions = {}): Promise<number> {
  const id = await plan(template, options);
  await template.asSuperadmin.rpc.rollouts.start.mutate({ id });
  await workOffRollouts();
  return id;
}

export async function rollBack({ asSuperadmin }: Template, id: number): Promise<void> {
  await asSuperadmin.rpc.rollouts.rollback.mutate({ id });
  await workOffRollouts();
}

export const stateOf = async ({ asSuperadmin }: Template, id: number) =>
  (await asSuperadmin.rpc.rollouts.get.query({ id })).rollout;

export const targetsOf = async ({ asSuperadmin }: Template, id: number) =>
  (await asSuperadmin.rpc.rollouts.report.query({ id, limit: 200 })).projects;

/** A template that both projects have, in its first release. */
export async function givenSynced(template: Template): Promise<Template> {
  await sync(template);
  return template;
}

/** Changes rows as a project would. */
export async function edit(table: string, id: number, values: Record<string, unknown>): Promise<void> {
  const sets = Object.entries(values).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  await query(
    await testDb(),
    sql`update ${sql.table(table)} set ${sql.join(sets)}, updated_at = now() + interval '1 second' where id = ${id}`,
  );
}
