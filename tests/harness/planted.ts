import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Plant = {
  title: string;
  /** Part of the fault that shows it. */
  shows: string;
  /** Why it can't be shown there. */
  note: string | undefined;
  file: string;
  changes: [from: string, to: string][];
};

/** The first line of a plant is its title with the fault that shows it, the second one its file. The others are texts and what replaces them, after a note. */
export const plantsIn = (path: string): Plant[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n\n')
    .map((plant) => {
      const [heading = '', file = '', ...rest] = plant.split('\n');
      const note = rest[0]?.startsWith('# ') ? rest.shift()!.slice(2) : undefined;
      const [title = '', ...shows] = heading.split(': ');
      const texts = rest.map((line) => line.slice(2));
      return {
        title,
        shows: shows.join(': '),
        note,
        file,
        changes: texts.flatMap((from, at) => (at % 2 ? [] : [[from, texts[at + 1]!]])),
      };
    });

const ROOT = join(import.meta.dirname, '../..');
/** Node follows links: a linked file would import the sources without the plant. */
const COPIED = ['server', 'shared', 'client', 'tests', 'package.json'];

/** Works on a copy of the repository with a bug in it. */
export async function withPlanted<Result>(
  { file, changes }: Plant,
  work: (directory: string) => Promise<Result>,
): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), 'deckhand-planted-'));
  try {
    for (const entry of readdirSync(ROOT)) {
      if (COPIED.includes(entry)) cpSync(join(ROOT, entry), join(directory, entry), { recursive: true });
      else symlinkSync(join(ROOT, entry), join(directory, entry));
    }
    let source = readFileSync(join(ROOT, file), 'utf8');
    for (const [from, to] of changes) {
      if (source.split(from).length !== 2) throw new Error(`${file} does not have the text once: ${from}`);
      source = source.replace(from, () => to);
    }
    writeFileSync(join(directory, file), source);
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
