import { useSignal } from '@preact/signals';
import { isSuperadmin } from '../account.ts';
import { set } from '../parts/button.tsx';
import { Choice } from '../parts/form.tsx';
import { More, usePages, Waiting } from '../parts/loaded.tsx';
import { SearchField } from '../parts/table.tsx';
import { client } from '../service.ts';

/** `none` says what choosing none means; with `isOfAll`, superadmins choose among all projects, not only their own. */
type ProjectFieldProps = { label: string; value?: number | null | undefined; none?: string; isOfAll?: boolean };

/** A choice of a project, as `project_id`; the service searches if there are many. */
export function ProjectField({ label, value, none, isOfAll }: ProjectFieldProps) {
  const search = useSignal('');
  const pages = usePages<{ id: number; name: string }>(
    async (cursor) => {
      const list = isOfAll && isSuperadmin.peek() ? client.projects.list : client.projects.listOwn;
      const isFirst = !cursor && !search.peek();
      const [{ projects, next_cursor }, chosen] = await Promise.all([
        list.query({ limit: 50, cursor, search: search.peek() || null }),
        isFirst && value ? list.query({ id: value }) : undefined,
      ]);
      const others = chosen ? projects.filter(({ id }) => id !== value) : projects;
      return { rows: [...(chosen?.projects ?? []), ...others], next: next_cursor };
    },
    [search.value, value],
  );
  const found = pages.data.value?.map(({ id, name }): [string, string] => [`${id}`, name]) ?? [];
  // While people search, "none" is not offered: a search without a result would choose it.
  const isRequired = search.value !== '' || none === undefined;
  return (
    <Waiting loaded={pages}>
      {(search.value || pages.next.value) && (
        <SearchField label="Search projects" onSearch={(text) => set(search, text)()} />
      )}
      <Choice
        label={label}
        name="project_id"
        value={`${value ?? ''}`}
        required={isRequired}
        choices={isRequired ? found : [['', none], ...found]}
      />
      {pages.next.value && <More pages={pages} noun="project" />}
    </Waiting>
  );
}
