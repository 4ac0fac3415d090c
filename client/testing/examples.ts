import { FullBoard, FullGroup, ListedBoard } from '../../shared/board.ts';
import { CreatedCard, ListedCard } from '../../shared/card.ts';
import { CommentThread } from '../../shared/comment.ts';
import { Event } from '../../shared/event.ts';
import { exampleRow } from '../../shared/exampleRow.ts';
import { Project } from '../../shared/project.ts';
import { Tag } from '../../shared/tag.ts';
import type { Rows } from './rowTypes.ts';

/** The rows that builders start from. The package has them printed, since it has no models. */
export const EXAMPLES: Rows = {
  project: exampleRow(Project),
  board: exampleRow(ListedBoard.extend(FullBoard.shape)),
  group: exampleRow(FullGroup),
  card: exampleRow(ListedCard.extend(CreatedCard.shape)),
  comment: exampleRow(CommentThread),
  tag: exampleRow(Tag),
  event: exampleRow(Event),
};
