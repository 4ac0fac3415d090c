export const LIVE = 'deleted_at is null';

/** For the index that finds rows to remove, copies by their template. Writing live rows does not touch it. */
export const DELETED = 'deleted_at is not null';
