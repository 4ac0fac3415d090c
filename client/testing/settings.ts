import type { Environment } from '../../server/runtime/env.ts';
import type { FixedSetting } from './messages.ts';

/** Settings of the service, as in docs/settings.md: their names and texts. Address and database are fixed. */
export type TestSettings = Omit<Environment, FixedSetting>;
