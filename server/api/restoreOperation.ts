import type { EventType } from '../../shared/event.ts';
import { rest } from './restOperation.ts';

/** What every restore declares. Nodes of the version before don't know its event. */
export const restoring = <Procedure extends Restoring>(
  procedure: Procedure,
  path: `/${string}`,
  noun: string,
  { events, with: others }: { events: [EventType, ...EventType[]]; with?: string },
) =>
  rest(procedure, path, {
    message: `${noun[0]?.toUpperCase()}${noun.slice(1)} restored.`,
    summary: `Restore a ${noun}`,
    description: `Undoes the deletion of a ${noun}${others ? `, with ${others} that the same deletion took along` : ''}. It gets its old place, or the last one if that is taken. A row that is not deleted stays as it is.`,
  }).meta({ events, level: 1 }) as Procedure;

type Restoring = Parameters<typeof rest>[0] & { meta(meta: { events: EventType[]; level: number }): unknown };
