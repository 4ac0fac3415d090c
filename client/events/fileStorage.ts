import { DeckhandError } from '../errors.ts';
import type { MirrorChange, MirrorState, MirrorStorage } from './mirror.ts';
import type { MirrorRows } from './mirrorRows.ts';

/** With this many lines, the next save writes the file anew. */
const MOST_LINES = 2000;

/** Keeps a mirror in a file of JSON lines. A line that a kill has cut off does not count. Needs Node. */
export function fileStorage(path: string): MirrorStorage {
  let kept = copyOf();
  // The first save rewrites the file, which may have only a part of a line.
  let lines = MOST_LINES;
  let owner: number | undefined;

  function mustBeOwn({ board: { id } }: Place): void {
    if (owner !== undefined && owner !== id)
      throw new DeckhandError(
        `${path} has board ${owner}, and also ${id}. Delete it, and give each board a file of its own.`,
      );
    owner = id;
  }

  async function rewrite(rows: MirrorRows, place: Place): Promise<void> {
    const [boards, groups, cards] = [[...rows.boards.values()], [...rows.groups.values()], [...rows.cards.values()]];
    const whole = { ...place, put: { boards, groups, cards }, removed: { boards: [], groups: [], cards: [] } };
    const { open, rename } = await files();
    const file = await open(`${path}.new`, 'w');
    try {
      await file.writeFile(lineOf(whole));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
    lines = 1;
  }

  return {
    load: async () => {
      const { readFile } = await files();
      const text = await readFile(path, 'utf8').catch((error: { code?: string }) => {
        if (error.code === 'ENOENT') return '';
        throw error;
      });
      // What follows the last line break was cut off.
      const changes = text.split('\n').slice(0, -1);
      const rows = copyOf();
      let place: Place | undefined;
      owner = undefined;
      for (const [at, line] of changes.entries()) {
        place = applyLine(rows, line, `Line ${at + 1} of ${path}`);
        mustBeOwn(place);
      }
      kept = rows;
      if (!place) return undefined;
      return { rows: copyOf(rows), ...place };
    },
    save: async (change) => {
      mustBeOwn(change);
      if (lines >= MOST_LINES) {
        const next = copyOf(kept);
        await rewrite(next, apply(next, change));
        kept = next;
        return;
      }
      const { appendFile } = await files();
      const more = lines + 1;
      // An append that fails may leave a part of its line: the next save writes the file anew.
      lines = MOST_LINES;
      await appendFile(path, lineOf(change));
      lines = more;
      apply(kept, change);
    },
  };
}

/** Loaded when it is needed: the rest of the module works without Node. */
const files = () => import('node:fs/promises');

const lineOf = (change: MirrorChange) => `${JSON.stringify(change)}\n`;

/** What a change says besides its rows. */
type Place = Omit<MirrorState, 'rows'>;

/** Rows that are changed in place: a copy of 100,000 for each line would take a minute. */
type Kept = { [Kind in keyof MirrorRows]: Map<number, MirrorChange['put'][Kind][number]> };

const copyOf = ({ boards, groups, cards }: Partial<MirrorRows> = {}): Kept => ({
  boards: new Map(boards),
  groups: new Map(groups),
  cards: new Map(cards),
});

function applyLine(rows: Kept, line: string, place: string): Place {
  try {
    return apply(rows, JSON.parse(line, toDate));
  } catch {
    throw new DeckhandError(`${place} can't be read. Delete the file: the mirror then reads all rows again.`);
  }
}

function apply(rows: Kept, { put, removed, ...place }: MirrorChange): Place {
  const change = <Row extends { id: number }>(kept: Map<number, Row>, put: Row[], gone: number[]) => {
    for (const id of gone) kept.delete(id);
    for (const row of put) kept.set(row.id, row);
  };
  change(rows.boards, put.boards, removed.boards);
  change(rows.groups, put.groups, removed.groups);
  change(rows.cards, put.cards, removed.cards);
  return place;
}

/** The fields that are times: any other text may look like one. */
const TIMES = /^(created_at|updated_at|deleted_at|due_date|snoozed_until)$/;
const toDate = (name: string, value: unknown) =>
  TIMES.test(name) && typeof value === 'string' ? new Date(value) : value;
