/** The name that was probably meant by a misspelt one: the nearest one, with at most two mistakes. */
export function nearestName(misspelt: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, mistakes: countMistakes(misspelt.toLowerCase(), name.toLowerCase()) }))
    // In a short name, two mistakes make any other.
    .filter(({ name, mistakes }) => mistakes <= Math.min(2, Math.floor(name.length / 3)))
    .sort((one, other) => one.mistakes - other.mistakes);
  return ranked[0]?.name;
}

/** Letters that are missing, added, replaced, or swapped with the next one. */
function countMistakes(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        last[column]! + 1,
        current[column - 1]! + 1,
        last[column - 1]! + (isSame ? 0 : 1),
        isSwapped ? beforeLast[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[other.length]!;
}
