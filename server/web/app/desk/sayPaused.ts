import { go, projectAddress } from '../address.ts';
import { say } from '../parts/message.tsx';

/** Says what was done, and which webhooks lost their right by it. */
export function sayPaused(done: string, webhooks: { project_id: number; host: string }[]): void {
  const hosts = webhooks.map(({ host }) => host).join(', ');
  const show = () => go(projectAddress(webhooks[0]?.project_id ?? 0, 'webhooks'));
  if (hosts === '') say(done);
  else say(`${done} That switched off their webhooks to ${hosts}.`, { label: 'Show webhooks', run: show });
}
