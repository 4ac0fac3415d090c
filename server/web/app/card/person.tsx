import { account } from '../account.ts';
import { timeText } from '../parts/time.tsx';
import { MOST_MEMBERS, members } from '../project.ts';

/** The name of a user, as of now. One who left, or a superadmin, is in no list; of very many members, not all are read. */
export function nameOf(userId: number): string {
  const { size } = members.value;
  const known = members.value.get(userId)?.name ?? (userId === account.value?.id ? account.value.name : undefined);
  return known ?? (size > 0 && size < MOST_MEMBERS ? 'Somebody who is not a member' : 'Somebody');
}

const STEPS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/** How long ago; the exact time is in its tooltip. */
export function Ago({ at }: { at: Date }) {
  const seconds = Math.max(0, (Date.now() - at.getTime()) / 1000);
  const [unit, size] = STEPS.find(([, length]) => seconds >= length) ?? ['second', 1];
  const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  return (
    <time class="hint" dateTime={at.toISOString()} title={timeText(at)}>
      {words.format(seconds < 60 ? 0 : -Math.floor(seconds / size), unit)}
    </time>
  );
}
