import { defineEntity, p } from '@mikro-orm/core';
import { EXPORT_STATES } from '../../../shared/erasure.ts';
import { identity, refersTo, timestamp } from './columns.ts';
import { User } from './user.ts';

/** That a user was erased. The operator's file has the same, for backups that still know them. */
export const Erasure = defineEntity({
  name: 'Erasure',
  tableName: 'erasures',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary(),
    /** Tells the user from another one who gets the same id after a restore. */
    user_created_at: timestamp(),
    erased_at: timestamp().defaultRaw('now()'),
    /** Who did it; null for the operator. */
    erased_by: () => refersTo(User, 'erased_by').nullable(),
    /** When the log of events was gone through again, for calls that were under way. */
    swept_at: timestamp().nullable(),
  },
  indexes: [
    { properties: ['erased_at'] },
    { name: 'erasures_unswept_index', properties: ['user_id'], where: 'swept_at is null' },
  ],
});

/** All rows about a person, which a process writes into parts. */
export const Export = defineEntity({
  name: 'Export',
  tableName: 'exports',
  properties: {
    id: identity(),
    user_id: () => refersTo(User, 'user_id').deleteRule('cascade'),
    state: p.enum([...EXPORT_STATES]).default('waiting'),
    /** A process writes it; if that one is killed, another begins again after this time. */
    leased_until: timestamp().nullable(),
    /** Tells the process that writes it from earlier ones. */
    attempts: p.integer().default(0),
    created_at: timestamp().defaultRaw('now()'),
    /** Null while it waits. */
    expires_at: timestamp().nullable(),
  },
  indexes: [
    { properties: ['user_id', 'id'] },
    { properties: ['expires_at'] },
    { name: 'exports_waiting_index', properties: ['id'], where: `state = 'waiting'` },
  ],
});

export const ExportPart = defineEntity({
  name: 'ExportPart',
  tableName: 'export_parts',
  properties: {
    export_id: () => refersTo(Export, 'export_id').primary().deleteRule('cascade'),
    number: p.integer().primary(),
    /** An array of rows, as JSON. */
    data: p.text(),
  },
});
