import { useSignal } from '@preact/signals';
import { isSuperadmin } from './account.ts';
import { projectAddress } from './address.ts';
import { Button, set } from './parts/button.tsx';
import { Dialog } from './parts/dialog.tsx';
import { More, usePages, Waiting } from './parts/loaded.tsx';
import { SearchField } from './parts/table.tsx';
import { project } from './project.ts';
import { client } from './service.ts';

type Found = { id: number; name: string };

/** The project that is shown; opens a list of all others, which the service searches. */
export function ProjectPicker() {
  const isOpen = useSignal(false);
  const close = set(isOpen, false);
  return (
    <>
      <button type="button" class="picker" aria-haspopup="dialog" onClick={set(isOpen, true)}>
        <span class="name" dir="auto">
          {project.value?.name ?? 'Choose a project'}
        </span>{' '}
        <span aria-hidden="true">▾</span>
      </button>
      {isOpen.value && (
        <Dialog title="Projects" onClose={close} class="projects">
          <ProjectList onChoose={close} />
          <div class="choices">
            <Button as="quiet" onClick={close}>
              Close
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function ProjectList({ onChoose }: { onChoose: () => void }) {
  const search = useSignal('');
  const pages = usePages<Found>(
    async (cursor) => {
      const list = isSuperadmin.peek() ? client.projects.list : client.projects.listOwn;
      const input = { limit: 50, cursor, ...(search.peek() && { search: search.peek() }) };
      const { projects, next_cursor } = await list.query(input);
      return { rows: projects, next: next_cursor };
    },
    [search.value],
  );
  return (
    <>
      <SearchField label="Search projects" onSearch={(text) => set(search, text)()} />
      <Waiting loaded={pages}>
        <ul class="list">
          {pages.data.value?.map(({ id, name }) => (
            <li key={id}>
              <a
                href={projectAddress(id)}
                dir="auto"
                aria-current={id === project.value?.id ? 'page' : undefined}
                onClick={onChoose}
              >
                {name}
              </a>
            </li>
          ))}
        </ul>
        <More pages={pages} noun="project" />
      </Waiting>
    </>
  );
}
