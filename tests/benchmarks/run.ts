import type { Table } from './table.ts';

/** The options of a run; each case has defaults of its own for those that are undefined. */
export type Run = {
  seconds: number | undefined;
  rounds: number | undefined;
  isEmbedded: boolean;
  /** Another checkout of the service to compare with. */
  before: string | undefined;
  events: number;
  projects: number;
  share: number;
};

export type Case = (run: Run) => Promise<Table[]>;
