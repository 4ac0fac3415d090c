import { z } from 'zod';
import { count, id } from './fields.ts';
import { User } from './user.ts';
import { PausedWebhook } from './webhook.ts';

const webhooksOf = (description: string) => z.array(PausedWebhook).meta({ description });

export const Deactivated = z.object({
  user: User,
  sessions_ended: count.meta({ description: 'How many sessions ended.', example: 2 }),
  keys_refused: count.meta({ description: 'How many API keys are refused from now on.', example: 1 }),
  paused_webhooks: webhooksOf(
    'The webhooks that are switched off by it (`right_lost`); `users.activate` switches them on.',
  ),
  sole_owner_of: z
    .array(z.object({ project_id: id, name: z.string().meta({ description: 'Its name.', example: 'Launch' }) }))
    .meta({ description: 'The projects that have no other active owner: name one.' }),
});
export const Activated = z.object({
  user: User,
  keys_accepted: count.meta({ description: 'How many API keys work again.', example: 1 }),
  resumed_webhooks: webhooksOf('The webhooks that the deactivation had switched off, and that go on.'),
});
