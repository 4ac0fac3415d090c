import { useSignal } from '@preact/signals';
import { board, moveCard, readBoard, readGroups } from '../board/boardState.ts';
import { NO_GROUP } from '../board/places.ts';
import { set } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Choice, Field, Form } from '../parts/form.tsx';
import { useLoaded, Waiting } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { boards, inProject } from '../project.ts';

type MoveProps = { card: { id: number; title: string; group_id: number | null }; onClose: () => void };

const PLACES: [string, string][] = [
  ['top', 'At the top'],
  ['bottom', 'At the bottom'],
  ['number', 'At a place that you choose'],
];

/** Moves a card without dragging: to any group of the project, at any place. */
export function MoveDialog({ card, onClose }: MoveProps) {
  const boardId = useSignal(board.peek()?.id ?? boards.peek()?.[0]?.id ?? 0);
  const place = useSignal('bottom');
  const groups = useLoaded(() => readGroups(boardId.peek()), [boardId.value]);

  const move = async ({ group = '', position = '1' }: Record<string, string>) => {
    const group_id = Number(group);
    const target = { id: card.id, group_id, ...(place.peek() !== 'bottom' && { position: Number(position) }) };
    if (board.peek()?.groups.some(({ id }) => id === group_id)) {
      onClose();
      await moveCard({ ...target, title: card.title });
      return;
    }
    await inProject().cards.move.mutate({ ...target, group_id: group_id || null });
    onClose();
    const title = groups.data.peek()?.find(({ id }) => id === group_id)?.title;
    const to = boards.peek()?.find(({ id }) => id === boardId.peek())?.title;
    say(`Moved “${card.title}” ${title ? `to ${title} on the board ${to}` : 'out of its group'}.`);
    readBoard();
  };
  const toChoice = ({ id, title }: { id: number; title: string }): [string, string] => [String(id), title];
  return (
    <Dialog title={`Move “${card.title}”`} onClose={onClose}>
      <Form action="Move" onSubmit={move} onCancel={onClose}>
        <Choice
          label="Board"
          value={String(boardId.value)}
          choices={boards.value?.map(toChoice) ?? []}
          onChange={({ currentTarget }) => set(boardId, Number(currentTarget.value))()}
        />
        <Waiting loaded={groups}>
          <Choice
            label="Group"
            name="group"
            value={String(card.group_id ?? NO_GROUP)}
            choices={[...(groups.data.value?.map(toChoice) ?? []), [String(NO_GROUP), 'In no group']]}
          />
        </Waiting>
        <Choice
          label="Place"
          value={place.value}
          choices={PLACES}
          onChange={({ currentTarget }) => set(place, currentTarget.value)()}
        />
        {place.value === 'number' && <Field label="Place, from 1" name="position" type="number" min={1} required />}
      </Form>
    </Dialog>
  );
}
