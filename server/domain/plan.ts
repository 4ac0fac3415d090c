import { sql } from 'kysely';
import type { z } from 'zod';
import type { Plan, PlanList, PlanSet, TrialUpgrade } from '../../shared/subscription.ts';
import type { Provisioning } from '../context.ts';
import { type Db, query } from '../database/query.ts';
import { invalid } from '../errors.ts';
import { readCursor, toPage } from './page.ts';

export type PlanRow = z.input<typeof Plan>;

/** Puts a line into the catalogue, or changes the one that is there. Checkouts that are open keep their price. */
export async function setPlan(
  { db }: Provisioning,
  { product, plan, period, price_cents, currency, is_active }: PlanSet,
) {
  const [set] = await query(
    db,
    sql<PlanRow>`
      insert into plans (product, plan, period, price_cents, currency, is_active)
      values (${product}, ${plan}, ${period}, ${price_cents}, ${currency ?? 'EUR'}, ${is_active ?? true})
      on conflict (product, plan, period) do update set price_cents = excluded.price_cents, currency = coalesce(${currency ?? null}::text, plans.currency),
        is_active = coalesce(${is_active ?? null}::boolean, plans.is_active), updated_at = now()
      returning *`,
  );
  return { plan: set! };
}

export async function listPlans({ db }: Provisioning, { product, cursor, limit }: PlanList) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<PlanRow>`
      select * from plans where id > ${after} and (${product ?? null}::text is null or product = ${product ?? null})
      order by id limit ${limit + 1}`,
  );
  const { rows: plans, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { plans, next_cursor };
}

/** The line of the catalogue that was chosen, or which field names none. */
export async function choosePlan(db: Db, { product, plan, period }: TrialUpgrade): Promise<PlanRow> {
  const ofProduct = await query(
    db,
    sql<PlanRow>`select * from plans where product = ${product} and is_active order by id`,
  );
  if (ofProduct.length === 0) throw invalid({ product: 'names no product' });
  const ofPlan = ofProduct.filter((line) => line.plan === plan);
  if (ofPlan.length === 0) throw invalid({ plan: oneOf(ofProduct.map((line) => line.plan)) });
  const chosen = ofPlan.find((line) => line.period === period);
  if (!chosen) throw invalid({ period: oneOf(ofPlan.map((line) => line.period)) });
  return chosen;
}

const oneOf = (choices: string[]) => `must be one of ${[...new Set(choices)].join(', ')}`;
