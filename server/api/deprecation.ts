/** The notice that a procedure will end (docs/versions.md), with dates such as `2026-11-16`. */
export type Deprecation = {
  /** The day of the notice. */
  since: string;
  /** It works until this day, at least six months after the notice. */
  sunset: string;
  /** The procedure to call instead, if there is one. */
  use?: string;
};

const SHORTEST_MONTHS = 6;

/** Throws for a notice that callers could not rely on. */
export function checkDeprecation(name: string, { since, sunset, use }: Deprecation, names: readonly string[]): void {
  for (const day of [since, sunset])
    if (!isDay(day)) throw new Error(`${name} is deprecated with ${day}: write a date as 2026-11-16.`);
  const earliest = new Date(since);
  earliest.setUTCMonth(earliest.getUTCMonth() + SHORTEST_MONTHS);
  if (new Date(sunset) < earliest)
    throw new Error(`${name} must work for ${SHORTEST_MONTHS} months after the notice: its sunset is too early.`);
  if (use !== undefined && (use === name || !names.includes(use)))
    throw new Error(`${name} is deprecated for ${use}, which is no other procedure.`);
}

function isDay(text: string): boolean {
  const date = new Date(text);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === text;
}

/** What follows the word "deprecated". `successor` is what to call instead, in the words of the reader. */
export const deprecationInWords = ({ since, sunset }: Deprecation, successor: string | undefined) =>
  `since ${since}; works until ${sunset}.${successor ? ` Use \`${successor}\` instead.` : ''}`;
