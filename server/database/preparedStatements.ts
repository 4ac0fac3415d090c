import { createHash } from 'node:crypto';

/** More than the service has statements with fixed texts; each uses some memory in every server process. */
const MOST_NAMES = 500;

/** The limit of remembered texts that were seen once; then they are all forgotten. */
const MOST_SEEN = 1000;

/** Marks a statement that is not prepared: PostgreSQL plans it each time for its values and the transaction's settings. */
export const PLANNED_EACH_TIME = '/* planned each time */';

/**
 * Names for prepared statements, which PostgreSQL parses and plans once per connection; that takes several times as long as
 * running them. A text gets a name the second time it is used, so that one-off texts use no names.
 */
export class StatementNames {
  private readonly names = new Map<string, string>();
  private readonly seen = new Set<string>();
  private generation = 0;

  of(text: string): string | undefined {
    return this.names.get(text) ?? this.nameRepeated(text);
  }

  private nameRepeated(text: string): string | undefined {
    if (text.includes(PLANNED_EACH_TIME)) return undefined;
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

  /** Renames all statements, so that they are prepared again: a changed table affects other statements, too. */
  forget(staleName: string): void {
    if (!staleName.startsWith(`deckhand_${this.generation}_`)) return;
    this.generation++;
    for (const text of this.names.keys()) this.seen.add(text);
    this.names.clear();
  }
}

/** Shared by all connections of this process. */
export const statementNames = new StatementNames();

/**
 * Whether a migration changed the columns of a prepared `select *`, or the statement was deallocated, for example by a pooler;
 * it works again under a new name.
 */
export function isStalePlan(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code === '26000') return true;
  return code === '0A000' && message === 'cached plan must not change result type';
}
