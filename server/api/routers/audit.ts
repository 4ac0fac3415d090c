import { AuditList, AuditPage } from '../../../shared/audit.ts';
import { listAuditEntries } from '../../domain/event/audit.ts';
import { rest } from '../restOperation.ts';
import { ownerOrSuperadminProcedure, router } from '../trpc.ts';

export const auditRouter = router({
  list: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/audit/list', {
    message: 'Audit entries.',
    summary: 'List audit entries',
    description:
      'Sign-ins, changes of members, roles, keys, sessions, passwords and second factors, syncs, payments, and what superadmins did in projects of others, newest first: of a project for its owners, of everything for superadmins. A page reads at most 1,000 entries: with a filter it may be short or empty, and still have a `next_cursor`.',
  })
    .input(AuditList)
    .output(AuditPage)
    .query(({ ctx, input }) => listAuditEntries(ctx, input)),
});
