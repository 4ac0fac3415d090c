/** For programs that work with events: the package has it as `deckhand-client/events`. */
export type {
  ChangeEvent,
  EventMark,
  EventOf,
  EventStore,
  HandlerContext,
  HandlerOptions,
  Handlers,
} from './event.ts';
export { type FetchedRow, fetchRow } from './fetchRow.ts';
export { fileStorage } from './fileStorage.ts';
export { type FollowEventsOptions, followEvents } from './followEvents.ts';
export { type CursorStore, memoryStore } from './memoryStore.ts';
export {
  type Mirror,
  type MirrorChange,
  type MirrorOptions,
  type MirrorState,
  type MirrorStorage,
  openMirror,
} from './mirror.ts';
export type { MirrorRows } from './mirrorRows.ts';
export { type PostgresClient, type PostgresPool, type PostgresStoreOptions, postgresStore } from './postgresStore.ts';
export {
  type NodeRequest,
  type NodeResponse,
  type ReceiveOptions,
  receiveWebhooks,
  type WebhookReceiver,
} from './receive.ts';
