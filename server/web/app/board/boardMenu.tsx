import { go, projectAddress } from '../address.ts';
import { Button } from '../parts/button.tsx';
import { counted } from '../parts/counted.ts';
import { ask } from '../parts/dialog.tsx';
import { Menu } from '../parts/menu.tsx';
import { say, sayAloud, sayFailure } from '../parts/message.tsx';
import { boards, inProject, project, readBoards } from '../project.ts';
import { client } from '../service.ts';
import { board as shown } from './boardState.ts';

/** Reorders and deletes the board that is shown. */
export function BoardMenu() {
  const all = boards.value ?? [];
  const at = all.findIndex(({ id }) => id === shown.value?.id);
  return (
    <Menu label="Board actions" content="⋯">
      {at > 0 && (
        <Button as="item" onClick={() => shift(-1)}>
          Move up in the list
        </Button>
      )}
      {at < all.length - 1 && (
        <Button as="item" onClick={() => shift(1)}>
          Move down in the list
        </Button>
      )}
      <Button as="item" onClick={remove}>
        Delete the board…
      </Button>
    </Menu>
  );
}

async function shift(step: -1 | 1): Promise<void> {
  const before = boards.peek() ?? [];
  const from = before.findIndex(({ id }) => id === shown.peek()?.id);
  const moved = before[from];
  if (!moved) return;
  boards.value = before.toSpliced(from, 1).toSpliced(from + step, 0, moved);
  const positions = boards.peek()?.map(({ id }, index) => ({ id, position: index + 1 })) ?? [];
  try {
    await inProject().boards.reorder.mutate({ boards: positions });
    sayAloud(`“${moved.title}” is now board ${from + step + 1} of ${before.length}.`);
  } catch (error) {
    boards.value = before;
    sayFailure(error, 'The boards were not reordered.');
  }
}

async function remove(): Promise<void> {
  const board = shown.peek();
  const projectId = project.peek()?.id;
  if (!board || projectId === undefined) return;
  const { id, title } = board;
  try {
    const { groups_count, cards_count } = await inProject().trash.preview.query({ type: 'board', id });
    const text = `“${title}” with its ${counted(groups_count, 'group')} and ${counted(cards_count, 'card')} goes to the trash.`;
    if (!(await ask({ title: 'Delete the board?', text, action: 'Delete it' }))) return;
    await client.boards.delete.mutate({ id });
    boards.value = boards.peek()?.filter((one) => one.id !== id);
    go(projectAddress(projectId), { replace: true });
    say(`Deleted the board “${title}”.`, { label: 'Undo', run: () => restore(projectId, id, title) });
    await readBoards();
  } catch (error) {
    sayFailure(error);
  }
}

async function restore(projectId: number, id: number, title: string): Promise<void> {
  try {
    await client.boards.restore.mutate({ id });
    await readBoards();
    go(projectAddress(projectId, 'boards', id));
    say(`The board “${title}” is back.`);
  } catch (error) {
    sayFailure(error);
  }
}
