/** A count with its noun: "1 delivery", "2 deliveries". */
export const counted = (count: number, noun: string) =>
  `${count.toLocaleString('en')} ${count === 1 ? noun : pluralOf(noun)}`;

/** The plural of an English noun, by the rules that the words on the page need. */
export const pluralOf = (noun: string) => (/[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`);
