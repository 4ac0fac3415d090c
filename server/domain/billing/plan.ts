import { sql } from 'kysely';
import { invalid } from '../../../shared/errors.ts';
import { Plan, type PlanList, type PlanSet, type TrialUpgrade } from '../../../shared/subscription.ts';
import { readPage } from '../../database/page.ts';
import { type Db, transact } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { ProjectContext, ProvisioningContext } from '../access/context.ts';
import { writeEvents } from '../event/event.ts';

const PLAN_COLUMNS = Plan.keyof().options;
export type PlanRow = Pick<Row<'plans'>, (typeof PLAN_COLUMNS)[number]>;

/** Adds a plan to the catalogue, or changes it. Open checkouts keep their price. */
export async function setPlan(
  context: ProvisioningContext,
  { product, plan, period, price_cents, currency, is_active }: PlanSet,
) {
  const terms = { price_cents, currency: currency ?? undefined, is_active: is_active ?? undefined };
  const sent = Object.entries(terms).filter(([, value]) => value !== undefined);
  const isOther = sent.map(([term, value]) => sql<boolean>`plans.${sql.ref(term)} is distinct from ${value}`);
  return transact(context.db, async (db) => {
    const set = await db
      .insertInto('plans')
      .values({ product, plan, period, ...terms })
      .onConflict((line) =>
        line
          .columns(['product', 'plan', 'period'])
          .doUpdateSet({ ...terms, updated_at: NOW })
          .where(({ or }) => or(isOther)),
      )
      .returning(PLAN_COLUMNS)
      .executeTakeFirst();
    if (set) {
      await writeEvents({ ...context, db }, [{ type: 'plan.set', subject_id: set.id, data: { product, plan } }]);
      return { plan: set };
    }
    const known = db.selectFrom('plans').select(PLAN_COLUMNS);
    return { plan: await known.where(({ and }) => and({ product, plan, period })).executeTakeFirstOrThrow() };
  });
}

/** The plans of the catalogue; for owners, those that they can select. */
export async function listPlans({ db, caller }: ProjectContext, { product, ...page }: PlanList) {
  const plans = db
    .selectFrom('plans')
    .select(PLAN_COLUMNS)
    .$if(!caller.superadmin && !caller.superadmin_billing, (plans) => plans.where('is_active', 'is', true))
    .where(({ and }) => and({ product: product ?? undefined }));
  return readPage('plans', plans, page);
}

/** Finds the selected plan; the 422 says which field is wrong. */
export async function choosePlan(db: Db, { product, plan, period }: TrialUpgrade): Promise<PlanRow> {
  const ofProduct = await db
    .selectFrom('plans')
    .select(PLAN_COLUMNS)
    .where('product', '=', product)
    .where('is_active', 'is', true)
    .orderBy('id')
    .execute();
  if (ofProduct.length === 0) throw invalid({ product: 'does not exist' }, 'unknown_plan');
  const ofPlan = ofProduct.filter((line) => line.plan === plan);
  if (ofPlan.length === 0) throw invalid({ plan: oneOf(ofProduct.map((line) => line.plan)) }, 'unknown_plan');
  const chosen = ofPlan.find((line) => line.period === period);
  if (!chosen) throw invalid({ period: oneOf(ofPlan.map((line) => line.period)) }, 'unknown_plan');
  return chosen;
}

const oneOf = (choices: string[]) => `must be one of ${[...new Set(choices)].join(', ')}`;
