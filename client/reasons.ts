/** The package has a copy of the shared file instead of this one. */
export type { Reason } from '../shared/reasons.ts';
