/** The states that a sandbox can have. All have the same people with the same keys, in project 1. */
export const STATES = {
  empty: 'People and projects, without boards.',
  demo: 'The demo data: boards, cards, comments, tags, plans, a trial and themes.',
  large_board: 'One board with 10 groups and 5,000 cards.',
  expired_trial: 'The demo data; the trial of platform 1 ended yesterday.',
  rollout: 'The demo data; release 2 of a template has reached 1 of 4 projects, and waits for rollouts/advance.',
} as const;

export type SandboxState = keyof typeof STATES;

/** Somebody whose key works at once. `password` is undefined for the service. */
export type SandboxPerson = {
  role: 'superadmin' | 'owner' | 'member' | 'viewer' | 'outsider' | 'service';
  id: number;
  email: string;
  password?: string;
  key: string;
};

/** What the thread of a sandbox needs besides settings. */
export type SandboxStart = {
  state: SandboxState;
  /** Webhooks to receivers on http go to this address, which passes them on. */
  relay: string;
};

/** With the address of the receiver, in what the service sends to the relay. */
export const RECEIVER_HEADER = 'x-sandbox-receiver';
