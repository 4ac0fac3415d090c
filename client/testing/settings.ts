import type { Environment } from '../../server/runtime/env.ts';
import type { FixedSetting } from './messages.ts';

/** Settings of the service, as in its README: their names and texts. Address and database are fixed. */
export type TestSettings = Omit<Environment, FixedSetting>;
