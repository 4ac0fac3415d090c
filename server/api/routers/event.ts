import { Event, EventFollow, EventList, EventPage } from '../../../shared/event.ts';
import { listEvents } from '../../domain/event/feed.ts';
import { followEvents } from '../../domain/event/follow.ts';
import { rest } from '../restOperation.ts';
import { each, router, viewerProcedure } from '../trpc.ts';

export const eventRouter = router({
  list: rest(viewerProcedure, '/services/platforms/v1/events/list', {
    message: 'Events.',
    summary: 'List events',
    description:
      'What happened in the projects of the caller, for superadmins everywhere, in the order of its transactions, page by page: send `cursor` as `after` to go on. A filtered page may be empty and still have more behind it. Events are kept for 30 days, or as the operator has set.',
  })
    // A replica does not know which transactions are still running on the primary.
    .meta({ onPrimary: true, tool: true, reasons: ['cursor_invalid', 'cursor_too_old'] })
    .input(EventList)
    .output(EventPage)
    .query(({ ctx, input }) => listEvents(ctx, input)),

  follow: viewerProcedure
    .meta({
      rpcOnly: 'A stream: REST has GET …/events/stream, which server/http/restStream.ts adds.',
      openapi: {
        method: 'GET',
        path: '/services/platforms/v1/events/stream',
        summary: 'Follow events',
        description: 'The events of `events.list` as they happen, from now on or behind an event.',
        enabled: false,
      },
      onPrimary: true,
    })
    .meta({ reasons: ['cursor_invalid', 'cursor_too_old'] })
    .input(EventFollow)
    .output(each(Event))
    .subscription(({ ctx, input, signal }) => followEvents(ctx, input, signal)),
});
