/** Part of pg, but not of its types. */
declare module 'pg/lib/utils.js' {
  /** A bound value as the protocol sends it. */
  export function prepareValue(value: unknown): string | Buffer | null;
}
