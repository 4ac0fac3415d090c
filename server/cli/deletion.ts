import type { z } from 'zod';
import { toFailure } from '../../shared/errors.ts';
import type { PreviewedDeletion } from '../../shared/trash.ts';
import { counted } from '../runtime/count.ts';
import type { Call, Given, Outcome } from './command.ts';
import { kebab } from './options.ts';
import { confirm, isAsked } from './terminal.ts';

/** A deletion names what goes, asks before it, and says how to undo it. */

export const isDeletion = (procedure: string) => procedure.endsWith('.delete');

/** For good, so it asks as well. */
export const isErasure = (procedure: string) => procedure.endsWith('.erase');

export async function confirmErasure({ input, ...given }: Given): Promise<void> {
  const { id } = (input ?? {}) as { id?: number };
  const who = id === undefined ? 'your account' : `user ${id}`;
  if (isAsked(given)) await confirm(given.terminal, `Erase ${who} for good?`, 'Nothing was erased.');
}

/** What can be restored: `cards`, `masterCards`. */
const RESTORABLE = /^(master)?(board|group|card|comment|tag)s$/i;

type Named = { id: number; delete_from_projects?: boolean };

export async function runDeletion(call: Call, procedure: string, given: Given): Promise<Outcome> {
  const { chosen, terminal } = given;
  const input = given.input as Named;
  const [nouns = ''] = procedure.split('.');
  const what = await nameOf(call, nouns, input);

  if (isAsked(given)) await confirm(terminal, `Delete ${what}?`, 'Nothing was deleted.');
  const result = await call(procedure, input);
  const where = (['as', 'url'] as const)
    .map((name) => (chosen[name] === undefined ? '' : ` --${name} ${chosen[name] || "''"}`))
    .join('');
  const undo = `\nGet it back: npx deckhand ${kebab(nouns)} restore --id ${input.id}${where}`;
  return { result, message: `Deleted ${what}.${RESTORABLE.test(nouns) ? undo : ''}` };
}

/** Says what is deleted: `board 'Launch' with 3 groups and 400 cards`, or `board 7` if the caller may not read it. */
async function nameOf(call: Call, nouns: string, { id, delete_from_projects }: Named): Promise<string> {
  const noun = kebab(nouns).replace('-', ' ').slice(0, -1);
  const [, master, type] = RESTORABLE.exec(nouns) ?? [];
  const preview = master ? 'masterTrash.preview' : 'trash.preview';
  const found = type && (await call(preview, { type: type.toLowerCase(), id }).catch(ifNotAllowed));
  if (!found) return `${noun} ${id}`;
  const { title, ...counts } = found as z.output<typeof PreviewedDeletion>;
  const parts = [
    counts.groups_count > 0 && counted(counts.groups_count, 'group'),
    counts.cards_count > 0 && counted(counts.cards_count, 'card'),
    counts.comments_count > 0 && counted(counts.comments_count, 'reply', 'replies'),
    delete_from_projects && 'its copies in all projects',
  ].filter(Boolean);
  const others = parts.length === 0 ? '' : ` ${noun === 'tag' ? 'of' : 'with'} ${parts.join(' and ')}`;
  return `${noun} ${title === null ? id : `'${title}'`}${others}`;
}

/** A key may be allowed to delete, but not to read. */
function ifNotAllowed(error: unknown): undefined {
  const { status = toFailure(error).status } = error as { status?: number };
  if (status !== 403) throw error;
}
