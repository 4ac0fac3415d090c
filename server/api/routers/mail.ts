import { z } from 'zod';
import { Mail, MailChoice, MailList, MailPage } from '../../../shared/mail.ts';
import { listMails, retryMail } from '../../domain/mail/mailList.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

export const mailRouter = router({
  list: rest(superadminProcedure, '/services/platforms/v1/mails/list', {
    message: 'Mails.',
    summary: 'List mails',
    description:
      'The mails of the last 30 days, newest first, page by page: to whom, about what, and what came of them. Nobody can read their texts and links here.',
  })
    .input(MailList)
    .output(MailPage)
    .query(({ ctx, input }) => listMails(ctx, input)),

  retry: rest(superadminProcedure, '/services/platforms/v1/mails/retry', {
    message: 'The mail is tried again.',
    summary: 'Send a mail again',
    description:
      'Sends a mail at once that has failed for good, or that waits for its next attempt after a failure. Its text and its link are made anew. If its reason is gone meanwhile, it is dropped.',
  })
    .meta({ events: ['mail.retried'], level: 3, reasons: ['mail_not_failed'] })
    .input(MailChoice)
    .output(z.object({ mail: Mail }))
    .mutation(({ ctx, input }) => retryMail(ctx, input)),
});
