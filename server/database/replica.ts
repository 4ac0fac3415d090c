import { setTimeout as pause } from 'node:timers/promises';
import type { MikroORM } from '@mikro-orm/core';
import { PostgreSqlConnection } from '@mikro-orm/postgresql';
import { Kysely } from 'kysely';
import type pg from 'pg';
import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import { type ClientOptions, ServerClient } from './client.ts';
import { ormOptions } from './options.ts';
import { type Db, SHORT_TIMEOUT } from './query.ts';
import type { Tables } from './tables.ts';
import type { Written } from './writePosition.ts';

/** A replica further behind is left out; so callers see what others wrote at most so much later. */
export const LONGEST_LAG_MILLISECONDS = 10_000;
/** A position that is older is not used: the replica may be frozen, and its reads would wait for the timeout. */
const OLDEST_POSITION_MILLISECONDS = 500;
const RECONNECT_MILLISECONDS = 1_000;
/** How long a read waits for it, and how often it is asked meanwhile. */
const LONGEST_WAIT_MILLISECONDS = 100;
const ASK_AGAIN_MILLISECONDS = 5;

/**
 * What a replica says about itself. The start time tells servers behind one address apart, and a server from its restart. The
 * position is -1 on a server that replays no log.
 */
type Status = { isReplica: boolean; position: number; epoch: string | null; server: string };
const STATUS = `${SHORT_TIMEOUT} select pg_is_in_recovery() as "isReplica", pg_postmaster_start_time()::text as server,
  coalesce(pg_last_wal_replay_lsn() - '0/0', -1)::float8 as position, (select epoch::text from replicated_epoch) as epoch`;

/** How far the primary was at this time. */
export type Milestone = Written & { server: string; at: number };

/** One replica: its connections, and how far it has replayed the log of the primary. */
export class Replica {
  /** Host and port, without the password of the URL. */
  readonly name: string;
  readonly db: Db;
  /** Why no reads go there; undefined while they do. */
  leftOut: string | undefined = 'it was not asked yet';
  /** Whether it is the primary of this node: a server may be in both lists, and gets no reads as a replica meanwhile. */
  isPrimary = false;
  private readonly options: ClientOptions;
  private readonly log: Log;
  private readonly connected = new Set<ServerClient>();
  /** The connection that asks for the status. */
  private asking: ServerClient | undefined;
  private answering: Promise<void> | undefined;
  private primary: Milestone | undefined;
  private nextAttempt = 0;
  private latest: (Status & { at: number }) | undefined;
  /** The position of the primary that it has to pass next; undefined if it has passed the last known one. */
  private milestone: Milestone | undefined;
  private lastLag = 0;

  static async open(url: string, settings: Settings, orm: MikroORM, log: Log): Promise<Replica> {
    const { driverOptions } = await ormOptions({ ...settings, DATABASE_URL: url });
    // Of one host, which need not accept writes.
    const options = { ...(driverOptions as ClientOptions & { hosts: undefined }), hosts: undefined };
    return new Replica(url, options, settings.DATABASE_POOL_SIZE, orm, log);
  }

  private constructor(url: string, options: ClientOptions, max: number, orm: MikroORM, log: Log) {
    this.name = new URL(url).host;
    this.options = options;
    this.log = log;
    // The class of the primary's connections, so that both return the same types.
    const connection = new PostgreSqlConnection(orm.config, { clientUrl: url }, 'read');
    const { onPoolCreated } = options as { onPoolCreated?: (pool: pg.Pool) => void };
    const pool = {
      max,
      verify: (client: ServerClient, done: (error?: Error) => void) => this.verify(client).then(() => done(), done),
      onPoolCreated: (created: pg.Pool) => {
        onPoolCreated?.(created);
        created.on('connect', (client) => this.connected.add(client as unknown as ServerClient));
        created.on('remove', (client) => this.connected.delete(client as unknown as ServerClient));
      },
    };
    this.db = new Kysely<Tables>({ dialect: connection.createKyselyDialect({ ...options, ...pool } as object) });
  }

  /** Whether it shows all that was written up to here. If it will soon, waits for that. */
  async reaches({ epoch, position }: Written): Promise<boolean> {
    const end = performance.now() + LONGEST_WAIT_MILLISECONDS;
    while (this.mayServe(epoch)) {
      if (this.latest!.position >= position) return true;
      const left = end - performance.now();
      if (left <= 0 || this.lagMilliseconds > LONGEST_WAIT_MILLISECONDS) return false;
      // A frozen one does not answer.
      await Promise.race([this.ask(this.primary), pause(left)]);
      await pause(ASK_AGAIN_MILLISECONDS);
    }
    return false;
  }

  private mayServe(epoch: string | null): boolean {
    const { latest, leftOut } = this;
    if (latest === undefined || leftOut !== undefined || epoch === null || latest.epoch !== epoch) return false;
    return performance.now() - latest.at < OLDEST_POSITION_MILLISECONDS;
  }

  /** Undefined while its position is not known. */
  get lagSeconds(): number | undefined {
    return this.latest && this.lagMilliseconds / 1000;
  }

  private get lagMilliseconds(): number {
    return this.milestone ? Math.max(this.lastLag, performance.now() - this.milestone.at) : 0;
  }

  /** Asks how far it is; never throws. One question at a time. */
  ask(primary: Milestone | undefined): Promise<void> {
    this.primary = primary;
    this.answering ??= this.askOnce(primary).finally(() => {
      this.answering = undefined;
    });
    return this.answering;
  }

  private async askOnce(primary: Milestone | undefined): Promise<void> {
    if (performance.now() < this.nextAttempt) return;
    try {
      this.asking ??= await this.connect();
      this.judge(await statusOf(this.asking), primary);
    } catch (error) {
      this.lose((error as Error).message);
    }
  }

  async close(): Promise<void> {
    this.nextAttempt = Number.POSITIVE_INFINITY;
    this.asking?.removeAllListeners('end').drop('closed');
    await this.db.destroy();
  }

  private async connect(): Promise<ServerClient> {
    const client = new ServerClient({ ...this.options, isPreparing: false });
    client.on('error', () => undefined);
    await client.connect();
    client.once('end', () => this.lose('the connection was closed'));
    return client;
  }

  /** A new connection for reads must lead to the server whose position is known, and not to an earlier state of it. */
  private async verify(client: ServerClient): Promise<void> {
    const { latest } = this;
    const { server, position } = await statusOf(client);
    if (latest === undefined || server !== latest.server || position < latest.position)
      throw new Error('another server answers at this address, or it was restarted');
  }

  private judge(status: Status, primary: Milestone | undefined): void {
    this.latest = { ...status, at: performance.now() };
    this.isPrimary = !status.isReplica && status.server === primary?.server;
    this.measureLag(status.position, primary);
    this.leaveOut(this.reasonAgainst(status, primary));
  }

  private reasonAgainst({ isReplica, epoch }: Status, primary: Milestone | undefined): string | undefined {
    if (!isReplica) return 'it is a primary itself';
    if (this.lagMilliseconds > LONGEST_LAG_MILLISECONDS) return 'it is too far behind';
    if (epoch !== primary?.epoch) return 'it has not replayed the last start of a node, or follows another primary';
    return undefined;
  }

  /** By positions, not by the time of the last commit, which says nothing while nobody writes. */
  private measureLag(position: number, primary: Milestone | undefined): void {
    if (this.milestone && position < this.milestone.position) return;
    this.lastLag = this.milestone ? performance.now() - this.milestone.at : 0;
    this.milestone = primary && primary.position > position ? primary : undefined;
  }

  /** Without its status, nothing is known about it: running reads are cut off, and done on the primary instead. */
  private lose(reason: string): void {
    this.asking?.removeAllListeners('end').drop(reason);
    this.asking = undefined;
    this.latest = undefined;
    this.isPrimary = false;
    this.nextAttempt = performance.now() + RECONNECT_MILLISECONDS;
    for (const client of this.connected) client.drop(reason);
    this.leaveOut(reason);
  }

  private leaveOut(reason: string | undefined): void {
    if (this.leftOut === reason) return;
    this.leftOut = reason;
    if (reason === undefined) this.log.info(`Reads may go to the replica ${this.name}.`);
    else this.log.warn(`No reads go to the replica ${this.name}: ${reason}.`);
  }
}

const statusOf = async (client: ServerClient): Promise<Status> => (await client.query(STATUS)).rows[0];
