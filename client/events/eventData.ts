/** The package has a copy of the shared file instead of this one. */
export type * from '../../shared/eventData.ts';
