import type { ActiveFault, FaultInput, FaultName } from './faults.ts';
import type { SandboxPerson, SandboxState, STATES } from './states.ts';

export type SandboxControl = {
  /** Everything as it was at the start, in this state; the present one if not given. */
  reset: (input?: { state?: SandboxState; clock?: string }) => Promise<void>;
  addFault: (input: FaultInput) => Promise<void>;
  clearFaults: () => void;
  /** What `GET /_sandbox` answers. */
  describe: () => Description;
};

export type Description = {
  warning: string;
  url: string;
  version: string;
  state: SandboxState;
  states: typeof STATES;
  clock: { now: Date };
  project_id: number;
  people: Record<SandboxPerson['role'], SandboxPerson>;
  faults: readonly ActiveFault[];
  known_faults: Record<FaultName, { does: string; takes: readonly string[] }>;
  counts: { calls: number; webhooks: number };
  /** The last calls, the latest one last. */
  calls: readonly Call[];
};

/** A call that has ended; a lost answer has no status. */
export type Call = { method: string; path: string; status: number | undefined; fault: FaultName | undefined };
