import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { pluralOf } from './counted.ts';
import { More, type Pages, Waiting } from './loaded.tsx';

export type Column<Row> = [title: string, show: (row: Row) => ComponentChildren];

type TableProps<Row> = {
  /** What a row is, for people: "member". */
  noun: string;
  /** Which rows: "of the last 7 days". */
  which?: string;
  pages: Pages<Row>;
  /** One without a title has buttons. */
  columns: Column<Row>[];
  /** What tells rows apart; their id if not given. */
  keyOf?: (row: Row) => string | number;
  /** What to say if there are none. */
  none: string;
};

/** A list of the service as a table, page by page. */
export const Table = <Row,>({ noun, which, pages, columns, keyOf = idOf, none }: TableProps<Row>) => (
  <Waiting loaded={pages}>
    {pages.data.value?.length === 0 && !pages.next.value ? (
      <p class="hint">{none}</p>
    ) : (
      <div aria-busy={pages.isLoading}>
        <section class="wide" aria-label={[pluralOf(noun), which].filter(Boolean).join(' ')} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {columns.map(([title]) => (
                  <th key={title} scope="col">
                    {title || <span class="unseen">Actions</span>}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {pages.data.value?.map((row) => (
                <tr key={keyOf(row)}>
                  {columns.map(([title, show]) => (
                    <td key={title} data-title={title} dir="auto">
                      {show(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <More pages={pages} noun={noun} which={which} />
      </div>
    )}
  </Waiting>
);

const idOf = (row: unknown) => (row as { id: number }).id;

type SearchProps = { label: string; value?: string; onSearch: (text: string) => void };

/** A search of the service: reads while people type, but not for every letter. */
export function SearchField({ label, value, onSearch }: SearchProps) {
  const timer = useSignal<ReturnType<typeof setTimeout> | undefined>(undefined);
  const search = (text: string) => {
    clearTimeout(timer.peek());
    timer.value = setTimeout(() => onSearch(text.trim()), 250);
  };
  return (
    <input
      type="search"
      class="input search"
      aria-label={label}
      placeholder={label}
      defaultValue={value}
      onInput={({ currentTarget }) => search(currentTarget.value)}
    />
  );
}
