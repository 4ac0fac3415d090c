import type { ClockMemory } from './clock.ts';

/** What the thread of a Deckhand and the thread that started it send each other. */

/** The address and the database of a test. */
export const FIXED_SETTINGS = ['HOST', 'PORT', 'DATABASE_URL', 'DATA_DIR', 'DEMO_DATA'] as const;
export type FixedSetting = (typeof FIXED_SETTINGS)[number];

/** Given to the thread. */
export type Start = { clock: ClockMemory; settings: Record<string, string> };

/** Sent by the thread when the service listens. */
export type Started = { url: string; admin: { email: string; password: string } };

/** The only request: removes all rows. The reply comes on this port. */
export type Request = { reply: { postMessage: (message: Reply) => void } };

export type Reply = { failure: string | undefined };
