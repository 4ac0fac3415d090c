import type { ClockMemory } from './clock.ts';
import type { SandboxPerson, SandboxStart, SandboxState } from './sandbox/states.ts';

/** What the thread of a Deckhand and the thread that started it send each other. */

/** The address and the database of a test. */
export const FIXED_SETTINGS = ['HOST', 'PORT', 'DATABASE_URL', 'DATA_DIR', 'DEMO_DATA'] as const;
export type FixedSetting = (typeof FIXED_SETTINGS)[number];

/** Given to the thread. */
export type Start = { clock: ClockMemory; settings: Record<string, string>; sandbox?: SandboxStart | undefined };

/** Sent by the thread when the service listens. */
export type Started = { url: string; admin: { email: string; password: string }; people?: SandboxPerson[] };

/** `empty` removes all rows; a sandbox does the rest. The reply comes on this port. */
export type Request = Asked & { reply: { postMessage: (message: Reply) => void } };
export type Asked = { empty?: true; reset?: SandboxState; writeLaterEvent?: true; wakeWebhooks?: true };

/** The address changes with each reset. */
export type Reply = { failure: string | undefined; url?: string | undefined };
