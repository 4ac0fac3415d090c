import type { Procedures } from '../procedures.ts';
import type { OutputOf } from './types.ts';

/** Rows with all fields that a procedure may return: a board has both its groups, as in `get`, and its counts, as in `list`. */
export type Rows = {
  project: OutputOf<Procedures['projects']['create']>['project'];
  board: OutputOf<Procedures['boards']['get']>['board'] & OutputOf<Procedures['boards']['list']>['boards'][number];
  group: OutputOf<Procedures['boards']['get']>['board']['groups'][number];
  card: OutputOf<Procedures['cards']['create']>['card'] & OutputOf<Procedures['cards']['list']>['cards'][number];
  comment: OutputOf<Procedures['comments']['list']>['threads'][number];
  tag: OutputOf<Procedures['tags']['create']>['tag'];
  event: OutputOf<Procedures['events']['list']>['events'][number];
};
