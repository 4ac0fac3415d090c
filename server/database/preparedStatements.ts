import { createHash } from 'node:crypto';

/** More than the service has statements of a fixed shape; each takes some memory of every connection's server process. */
const MOST_NAMES = 500;

/** What was seen once is forgotten when there are more than this. */
const MOST_SEEN = 1000;

/** Set in front of a statement that PostgreSQL should plan for its values, or under settings of its transaction. */
export const PLANNED_EACH_TIME = '/* planned each time */';

/**
 * Names for statements: PostgreSQL parses and plans one with a name once for each connection, which otherwise takes several
 * times as long as running it. A text gets its name when it comes for the second time, so that texts of a changing shape
 * take no place.
 */
export class StatementNames {
  private readonly names = new Map<string, string>();
  private readonly seen = new Set<string>();
  private generation = 0;

  of(text: string): string | undefined {
    return this.names.get(text) ?? this.nameRepeated(text);
  }

  private nameRepeated(text: string): string | undefined {
    if (text.startsWith(PLANNED_EACH_TIME)) return undefined;
    if (!this.seen.delete(text)) {
      if (this.seen.size >= MOST_SEEN) this.seen.clear();
      this.seen.add(text);
      return undefined;
    }
    if (this.names.size >= MOST_NAMES) return undefined;
    const name = `deckhand_${this.generation}_${createHash('sha256').update(text).digest('base64url').slice(0, 16)}`;
    this.names.set(text, name);
    return name;
  }

  /** All plans are made anew, under new names: the tables changed below one of them, and so below others. */
  forget(staleName: string): void {
    if (!staleName.startsWith(`deckhand_${this.generation}_`)) return;
    this.generation++;
    for (const text of this.names.keys()) this.seen.add(text);
    this.names.clear();
  }
}

/** Of all connections of this process. */
export const statementNames = new StatementNames();

/**
 * A migration changed what a prepared `select *` answers, or somebody deallocated the statement, as a pooler does; under a
 * new name the statement works.
 */
export function isStalePlan(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code === '26000') return true;
  return code === '0A000' && message === 'cached plan must not change result type';
}
