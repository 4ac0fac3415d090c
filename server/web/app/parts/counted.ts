/** A count with its noun: "1 delivery", "2 deliveries". */
export const counted = (count: number, noun: string) =>
  `${count.toLocaleString('en')} ${count === 1 ? noun : pluralOf(noun)}`;

/** The plural of an English noun, by the rules that the words on the page need. */
export const pluralOf = (noun: string) => (/[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`);

/** What still gives access to an account whose sessions have ended. */
export function accessLeft({
  keys_left: keys,
  identities_left: identities,
}: {
  keys_left: number;
  identities_left: number;
}) {
  const work = (count: number) => (count === 1 ? 'still works' : 'still work');
  return [
    keys === 0 ? 'No API key is left.' : `${counted(keys, 'API key')} ${work(keys)}.`,
    identities > 0 && `${counted(identities, 'account')} at identity providers ${work(identities)}.`,
  ]
    .filter(Boolean)
    .join(' ');
}
