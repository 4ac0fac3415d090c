import { CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { Lane } from './lane.ts';
import type { Db } from './query.ts';

/** The lane of each database. A transaction is a `Db` of its own, and has none. */
export const lanes = new WeakMap<Db, Lane>();

/** The placeholder of a value in a compiled statement. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A named value of the statement: `value('id')`. */
export type ValueOf<Values> = <Name extends keyof Values & string>(name: Name) => RawBuilder<Values[Name]>;

export type PreparedOptions = {
  /** Whether it is a read of a few rows by keys: outside of transactions it shares its connection with others (`lane.ts`). */
  isShort?: boolean;
  /** Whether it returns nothing where the lane does not take it. */
  isOnlyOnLane?: boolean;
};

/**
 * A statement for hot paths: built and compiled only once. Values have names:
 * `prepared<{ id: number }, Row>((value) => sql`select … where id = ${value('id')}`)`.
 */
export function prepared<Values extends object, Row>(
  build: (value: ValueOf<Values>) => RawBuilder<Row>,
  { isShort = false, isOnlyOnLane = false }: PreparedOptions = {},
): (db: Db, values: Values) => Promise<Row[]> {
  let compiled: Compiled | undefined;
  return async (db, values) => {
    compiled ??= compile(db, build);
    const { text } = compiled;
    const bound = compiled.parameters.map((parameter) =>
      parameter instanceof Placeholder ? values[parameter.name as keyof Values] : parameter,
    );
    const lane = lanes.get(db);
    if (lane) {
      const read = isShort ? await lane.read(text, bound) : undefined;
      if (!read && isOnlyOnLane) return [];
      return (read ?? (await lane.runOnPool(text, bound))) as Row[];
    }
    const { rows } = await db.executeQuery<Row>(CompiledQuery.raw(text, bound));
    return rows;
  };
}

type Compiled = { text: string; parameters: unknown[] };

/** A value that is used in several places is bound once. */
function compile<Values>(db: Db, build: (value: ValueOf<Values>) => RawBuilder<unknown>): Compiled {
  const { sql: text, parameters } = build((name) => sql`${new Placeholder(name)}`).compile(db);
  const once: unknown[] = [];
  const places = parameters.map((parameter) => {
    const isSame = (other: unknown) =>
      parameter instanceof Placeholder && other instanceof Placeholder && other.name === parameter.name;
    const place = once.findIndex(isSame);
    return place < 0 ? once.push(parameter) : place + 1;
  });
  return { text: text.replace(/\$(\d+)/g, (_, number) => `$${places[number - 1]}`), parameters: once };
}
