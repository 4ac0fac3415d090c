type Page = { next_cursor: string | null };

/** Every page of a list, in order. */
export async function pagesOf<Read extends Page>(read: (cursor: string | null) => Promise<Read>): Promise<Read[]> {
  const pages = [await read(null)];
  for (let next = pages[0]!.next_cursor; next !== null; next = pages.at(-1)!.next_cursor) pages.push(await read(next));
  return pages;
}
