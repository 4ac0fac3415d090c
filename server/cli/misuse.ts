/** A wrong use of the command line. */
export const misuse = (message: string) => Object.assign(new Error(message), { code: 'ERR_PARSE_ARGS_MISUSE' });

/** Whether it is an error of Node's `parseArgs`, or one like it. */
export const isMisuse = (error: unknown): error is Error =>
  String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS');

/** The name that was probably meant: ` Did you mean boards list?`; empty if none is close. */
export function suggestion(given: string, known: Iterable<string>): string {
  const distances = [...known].map((name) => ({ name, distance: editsBetween(given, name) }));
  const [nearest] = distances.sort((a, b) => a.distance - b.distance);
  return nearest && nearest.distance <= Math.max(1, Math.floor(given.length / 3))
    ? ` Did you mean ${nearest.name}?`
    : '';
}

/** The number of letters to insert, delete, replace or swap with their neighbour. */
function editsBetween(one: string, other: string): number {
  let [previous, before]: number[][] = [Array.from({ length: other.length + 1 }, (_, at) => at), []];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(
        Math.min(
          previous![j]! + 1,
          row[j - 1]! + 1,
          previous![j - 1]! + (isSame ? 0 : 1),
          isSwapped ? before![j - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    [before, previous] = [previous, row];
  }
  return previous!.at(-1)!;
}
