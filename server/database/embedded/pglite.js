import { PGlite, protocol } from '@electric-sql/pglite';
import { engineCode } from './engineCode.js';

/** In JavaScript, as `engineCode.js`. */

/** A tenth of the default, so that analyzing a large table blocks other statements for only about 30 milliseconds. */
const STATISTICS_TARGET = 10;

/**
 * Half of the default. PGlite writes zeros to all of it when it opens, so that it costs memory and time from the start. With a
 * quarter, a board list of the benchmark is several times slower: what is not cached is read through JavaScript.
 */
const SHARED_BUFFERS = '64MB';

/**
 * Opens PGlite; `dataDir` is a directory, `fs` a file system in memory.
 *
 * @param {import('@electric-sql/pglite').PGliteOptions} options
 */
export async function openPglite(options) {
  const settings = [`default_statistics_target=${STATISTICS_TARGET}`, `shared_buffers=${SHARED_BUFFERS}`];
  const startParams = [...PGlite.defaultStartParams, ...settings.flatMap((setting) => ['-c', setting])];
  return PGlite.create({ ...options, pgliteWasmModule: await engineCode(), startParams });
}

const SYNC = protocol.serialize.sync();
const ERROR = 'E'.charCodeAt(0);

/**
 * The responses to messages of PostgreSQL's protocol, and to the Sync behind them, which commits them outside a transaction.
 *
 * @param {Pick<PGlite, 'execProtocolRawStream'>} engine
 * @param {Uint8Array} messages
 * @returns {Promise<import('./engine.ts').Responses>}
 */
export async function exchange(engine, messages) {
  const sent = await send(engine, messages, false);
  // Separately: after a crash of the database, a Sync would never return.
  return { sent, synced: hasCrashed(sent) ? new Uint8Array() : await send(engine, SYNC, true) };
}

/**
 * @param {Parameters<typeof exchange>[0]} engine
 * @param {Uint8Array} messages
 * @param {boolean} syncToFs
 */
async function send(engine, messages, syncToFs) {
  /** @type {Uint8Array[]} */
  const chunks = [];
  // Copied, since PGlite reuses the memory.
  await engine.execProtocolRawStream(messages, { onRawData: (bytes) => void chunks.push(bytes.slice()), syncToFs });
  return joined(chunks);
}

/**
 * With a buffer of its own, which another thread can get.
 *
 * @param {Uint8Array[]} parts
 */
export function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * Whether it has an error after which the database does not answer: its severity is the first field.
 *
 * @param {Uint8Array} bytes
 */
function hasCrashed(bytes) {
  const response = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < response.length; at += 1 + response.readInt32BE(at + 1)) {
    if (response[at] === ERROR && /^S(PANIC|FATAL)$/.test(response.toString('latin1', at + 5, at + 11))) return true;
  }
  return false;
}
