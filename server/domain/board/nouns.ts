/** What can be deleted and restored: how it is called in a list, and the rows that it lies in, by its columns. */
export const NOUNS = {
  boards: { title: 'title', parents: {} },
  groups: { title: 'title', parents: { board_id: 'boards' } },
  cards: { title: 'title', parents: { group_id: 'groups' } },
  // The text of a comment may be meant to be gone.
  comments: { title: null, parents: { card_id: 'cards', parent_comment_id: 'comments' } },
  tags: { title: 'name', parents: {} },
} as const;

export type Restorable = keyof typeof NOUNS;
export const RESTORABLE = Object.keys(NOUNS) as Restorable[];

/** The columns of a row that refer to what it lies in. */
export type ParentColumn = 'board_id' | 'group_id' | 'card_id' | 'parent_comment_id';
export const parentsOf = (table: Restorable) => Object.entries(NOUNS[table].parents) as [ParentColumn, Restorable][];
