const { CI, NIGHT, SEED, RUNS } = process.env;

/** At a developer's desk, the walks over all operations take a third of them; in CI and at night all. */
const THIRDS = 3;
export const isWhole = CI !== undefined || NIGHT !== undefined;

/** Suites have their long form only in `npm run test:night`. */
export const isNight = NIGHT !== undefined;

/** Decides what a run samples: the same seed gives the same run. At a desk, each run takes another third. */
export const seed = Number(SEED ?? (isWhole ? 1 : Math.ceil(Math.random() * THIRDS)));

/** How many random inputs are tried, as a multiple of the usual number. */
export const runs = Number(RUNS ?? 1);

/** The items of a list that this run walks. */
export const sampled = <Item>(items: readonly Item[]): Item[] =>
  items.filter((_, place) => isWhole || place % THIRDS === seed % THIRDS);
