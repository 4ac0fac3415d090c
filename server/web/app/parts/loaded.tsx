import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { explain, retryLater } from '../service.ts';
import { TextButton } from './button.tsx';
import { counted } from './counted.ts';

type State = { failure: Signal<string>; isLoading: Signal<boolean>; reload: () => Promise<void> };
export type Loaded<Data> = State & { data: Signal<Data | undefined> };
export type Page<Row> = { rows: Row[]; next: string | null };
export type Pages<Row> = Loaded<Row[]> & { next: Signal<string | null>; more: () => Promise<void> };

/** Reads something when the page opens, and again when one of `inputs` changes. A late response of an earlier read is dropped. */
export function useLoaded<Data>(read: () => Promise<Data>, inputs: unknown[]): Loaded<Data> {
  const data = useSignal<Data | undefined>(undefined);
  const [state, run] = useReading();
  const reload = () =>
    run(read, (loaded) => {
      data.value = loaded;
    });
  useEffect(() => {
    data.value = undefined;
    reload();
  }, inputs);
  return { data, ...state, reload };
}

/** Reads a list of the service page by page. */
export function usePages<Row>(read: (cursor: string | undefined) => Promise<Page<Row>>, inputs: unknown[]): Pages<Row> {
  const data = useSignal<Row[] | undefined>(undefined);
  const next = useSignal<string | null>(null);
  const [state, run] = useReading();
  const readPage = (cursor?: string) =>
    run(
      () => read(cursor),
      (page) => {
        data.value = cursor ? [...(data.peek() ?? []), ...page.rows] : page.rows;
        next.value = page.next;
      },
    );
  useEffect(() => {
    readPage();
  }, inputs);
  return { data, next, ...state, reload: () => readPage(), more: () => readPage(next.peek() ?? undefined) };
}

function useReading() {
  const failure = useSignal('');
  const isLoading = useSignal(true);
  /** A read that a later one has overtaken ends with that one. */
  const latest = useRef<Promise<void>>(undefined);
  const giveUp = useRef<() => void>(undefined);
  useEffect(() => () => giveUp.current?.(), []);
  const run = <Data,>(read: () => Promise<Data>, keep: (data: Data) => void): Promise<void> => {
    const isLatest = () => latest.current === own;
    const readAndKeep = async () => {
      try {
        const loaded = await read();
        if (!isLatest()) return latest.current;
        keep(loaded);
        failure.value = '';
      } catch (error) {
        if (!isLatest()) return latest.current;
        failure.value = explain(error);
        giveUp.current = retryLater(error, () => run(read, keep));
      }
      isLoading.value = false;
    };
    isLoading.value = true;
    giveUp.current?.();
    const own: Promise<void> = readAndKeep();
    latest.current = own;
    return own;
  };
  return [{ failure, isLoading }, run] as const;
}

export const Loading = () => (
  <p class="hint waiting" role="status">
    Loading…
  </p>
);

/** Shows that something is being read, or why it can't be, and lets people try again. */
export function Waiting({ loaded, children }: { loaded: Loaded<unknown>; children: ComponentChildren }) {
  const { data, failure, isLoading, reload } = loaded;
  return (
    <>
      {failure.value && (
        <p class="failure" role="alert">
          {failure}{' '}
          <TextButton text={isLoading.value ? 'Trying…' : 'Try again'} aria-busy={isLoading} onClick={reload} />
        </p>
      )}
      {data.value !== undefined ? children : !failure.value && <Loading />}
    </>
  );
}

/** How many rows are shown, and whether there are more. */
export function More({ pages, noun, which }: { pages: Pages<unknown>; noun: string; which?: string | undefined }) {
  const text = [counted(pages.data.value?.length ?? 0, noun), which].filter(Boolean).join(' ');
  if (!pages.next.value) return <p class="hint">{text}</p>;
  return (
    <p class="hint">
      {`The first ${text}. `}
      <TextButton text="Show more" disabled={pages.isLoading} onClick={pages.more} />
    </p>
  );
}
