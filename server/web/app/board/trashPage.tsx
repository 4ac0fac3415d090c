import { useSignal } from '@preact/signals';
import { go, projectAddress } from '../address.ts';
import { DeskPage } from '../desk/operators.tsx';
import { Button } from '../parts/button.tsx';
import { usePages } from '../parts/loaded.tsx';
import { say, sayFailure } from '../parts/message.tsx';
import { useReload } from '../parts/reload.ts';
import { Table } from '../parts/table.tsx';
import { inProject, members, project, readBoards, readTags } from '../project.ts';
import { client } from '../service.ts';

type Entry = Awaited<ReturnType<typeof client.trash.list.query>>['entries'][number];

const RESTORE: Record<string, (id: number) => Promise<unknown>> = {
  board: (id) => client.boards.restore.mutate({ id }),
  group: (id) => client.groups.restore.mutate({ id }),
  card: (id) => client.cards.restore.mutate({ id }),
  comment: (id) => client.comments.restore.mutate({ id }),
  tag: (id) => client.tags.restore.mutate({ id }),
};

/** What was deleted, and can still be restored. */
export function TrashPage() {
  const busy = useSignal<number | undefined>(undefined);
  const pages = usePages<Entry>(
    async (cursor) => {
      const { entries, next_cursor } = await inProject().trash.list.query({ limit: 50, ...(cursor && { cursor }) });
      return { rows: entries, next: next_cursor };
    },
    [project.value?.id],
  );
  useReload(/\.(deleted|restored)$/, pages.reload);
  const restore = async ({ type, id, title, deletion_id }: Entry) => {
    if (busy.peek() !== undefined) return;
    busy.value = deletion_id;
    try {
      await RESTORE[type]?.(id);
      const open = { label: 'Open', run: () => go(projectAddress(project.peek()?.id ?? 0, 'boards', id)) };
      say(`Restored “${title ?? type}”.`, type === 'board' ? open : undefined);
      await Promise.all([pages.reload(), readBoards(), readTags()]);
    } catch (error) {
      sayFailure(error);
    }
    busy.value = undefined;
  };
  return (
    <DeskPage title="Trash">
      <p class="hint">What was deleted stays here for a while; then it is removed for good.</p>
      <Table
        noun="entry"
        none="Nothing was deleted."
        pages={pages}
        keyOf={({ deletion_id }) => deletion_id}
        columns={[
          ['What', ({ type, title }) => <span dir="auto">{`${type} ${title ? `“${title}”` : ''}`}</span>],
          ['Rows', ({ count }) => count.toLocaleString()],
          ['Deleted', ({ deleted_at }) => deleted_at.toLocaleString()],
          [
            'By',
            ({ deleted_by }) => (deleted_by === null ? '' : (members.value.get(deleted_by)?.name ?? 'a former member')),
          ],
          [
            '',
            (entry) =>
              RESTORE[entry.type] && (
                <Button
                  as="quiet"
                  disabled={busy.value !== undefined}
                  aria-label={`Restore ${entry.type} ${entry.title ?? ''}`}
                  onClick={() => restore(entry)}
                >
                  Restore
                </Button>
              ),
          ],
        ]}
      />
    </DeskPage>
  );
}
