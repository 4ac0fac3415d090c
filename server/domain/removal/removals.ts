import type { Removal } from '../../database/removal.ts';
import type { Settings } from '../../runtime/env.ts';
import { KEY_REMOVALS } from '../access/idempotencyKey.ts';
import { IDENTITY_REMOVALS } from '../account/exchange.ts';
import { EXPORT_REMOVAL } from '../account/export.ts';
import { LOGOUT_TOKEN_REMOVAL } from '../account/identity.ts';
import { SESSION_REMOVALS } from '../account/signIn.ts';
import { SSO_REMOVAL } from '../account/sso.ts';
import { checkoutRemovals } from '../billing/checkoutRow.ts';
import { auditRemoval } from '../event/audit.ts';
import { eventRemoval } from '../event/feed.ts';
import { deliveryRemoval } from '../event/webhook.ts';
import { mailRemoval } from '../mail/mailList.ts';
import { releaseRemoval } from '../template/release.ts';
import { rolloutRemoval } from '../template/rollout.ts';
import { runRemoval } from '../template/templateRun.ts';
import { deletedRowRemovals } from './deletedRows.ts';

export type RemovalSettings = Pick<
  Settings,
  'TEMPLATE_RUNS_KEPT_DAYS' | 'EVENTS_KEPT_DAYS' | 'AUDIT_KEPT_DAYS' | 'CHECKOUTS_KEPT_DAYS' | 'DELETED_ROWS_KEPT_DAYS'
>;

/** Everything that is removed for good, in this order: what refers to other rows goes before them. */
export const removalsOf = (settings: RemovalSettings): Removal[] => [
  SSO_REMOVAL,
  LOGOUT_TOKEN_REMOVAL,
  ...SESSION_REMOVALS,
  ...IDENTITY_REMOVALS,
  ...KEY_REMOVALS,
  EXPORT_REMOVAL,
  ...checkoutRemovals(settings.CHECKOUTS_KEPT_DAYS),
  eventRemoval(settings.EVENTS_KEPT_DAYS),
  auditRemoval(settings.AUDIT_KEPT_DAYS),
  deliveryRemoval,
  mailRemoval,
  runRemoval(settings.TEMPLATE_RUNS_KEPT_DAYS),
  rolloutRemoval(settings.TEMPLATE_RUNS_KEPT_DAYS),
  releaseRemoval(settings.TEMPLATE_RUNS_KEPT_DAYS),
  ...(settings.DELETED_ROWS_KEPT_DAYS === undefined ? [] : deletedRowRemovals(settings.DELETED_ROWS_KEPT_DAYS)),
];
