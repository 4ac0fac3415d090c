/** The most similar name, by edit distance. */
export function nearestName(misspelt: string, names: Iterable<string>, mostMistakes: number): string | undefined {
  const ranked = [...names]
    // Skips names that can't be near: each missing or added letter is a mistake.
    .filter((name) => Math.abs(name.length - misspelt.length) <= mostMistakes)
    .map((name) => ({ name, mistakes: countMistakes(misspelt.toLowerCase(), name.toLowerCase()) }))
    .filter(({ mistakes }) => mistakes <= mostMistakes)
    .sort((one, other) => one.mistakes - other.mistakes);
  return ranked[0]?.name;
}

/** The Damerau-Levenshtein distance: missing, added, replaced and swapped letters. */
function countMistakes(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        costAt(last, column) + 1,
        costAt(current, column - 1) + 1,
        costAt(last, column - 1) + (isSame ? 0 : 1),
        isSwapped ? costAt(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return costAt(last, other.length);
}

const costAt = (row: number[], column: number) => row[column] ?? Number.POSITIVE_INFINITY;
