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
  /**
   * Whether it is the first one of its request, and so must notice a silent server soon, also while it waits for a lock. It returns
   * nothing where that takes a lane, and there is none.
   */
  isFirst?: boolean;
};

/**
 * A statement for hot paths: built and compiled only once. Values have names:
 * `prepared<{ id: number }, Row>((value) => sql`select … where id = ${value('id')}`)`. Values that are the same for many calls are
 * sent as `known`, the same object each time, and put in their places once.
 */
export function prepared<Values extends object, Row>(
  build: (value: ValueOf<Values>) => RawBuilder<Row>,
  { isShort = false, isFirst = false }: PreparedOptions = {},
): (db: Db, values: Values, known?: object) => Promise<Row[]> {
  let compiled: Compiled | undefined;
  /** The parameters with the known values in their places, by the object of these values. */
  const filled = new WeakMap<object, unknown[]>();
  return async (db, values, known) => {
    compiled ??= compile(db, build);
    const { text } = compiled;
    const parameters = known ? withKnown(compiled, known) : compiled.parameters;
    const bound = parameters.map((parameter) =>
      parameter instanceof Placeholder ? (values[parameter.name as keyof Values] ?? null) : parameter,
    );
    const lane = lanes.get(db);
    if (lane) {
      const read = isShort ? await lane.read(text, bound) : undefined;
      if (read) return read as Row[];
      if (isFirst) return isShort ? [] : ((await lane.writeFirst(text, bound)) as Row[]);
      return (await lane.runOnPool(text, bound)) as Row[];
    }
    const { rows } = await db.executeQuery<Row>(CompiledQuery.raw(text, bound));
    return rows;
  };

  function withKnown({ parameters }: Compiled, known: object): unknown[] {
    let partly = filled.get(known);
    if (!partly) {
      partly = parameters.map((parameter) =>
        parameter instanceof Placeholder && parameter.name in known
          ? known[parameter.name as keyof typeof known]
          : parameter,
      );
      filled.set(known, partly);
    }
    return partly;
  }
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
