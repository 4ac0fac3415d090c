import { sql } from 'kysely';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { connect } from '../../server/database/connect.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { findViolations } from '../faults/check.ts';
import type { Sent } from '../faults/load.ts';
import { givenDatabase, givenEmbedded, type Place } from '../faults/outcome.ts';
import { findChanged } from '../faults/upgradeLoad.ts';
import { makeWorld } from '../faults/world.ts';
import { CARD_DATA } from '../harness/events.ts';
import { readRows, removeProcesses } from '../harness/process.ts';
import { findTestServer } from '../harness/server.ts';
import { compareDelivered } from '../harness/webhookReceiver.ts';

const server = await findTestServer();
let place: Place;
beforeEach(async () => {
  place = server.url ? await givenDatabase(server.url) : await givenEmbedded();
});
afterEach(() => place.remove());
afterAll(removeProcesses);

const sent = (operation: Sent['operation'], input: object, outcome: Partial<Sent>): Sent => ({
  operation,
  surface: 'rest',
  input,
  sentAt: 0,
  milliseconds: 1,
  outcome: 'acknowledged',
  undocumented: [],
  ...outcome,
});

it('the check of the fault suite reports lost, duplicate, changed, undeleted and partial writes', async () => {
  const { settings } = place;
  const { clients, masterBoards } = await makeWorld(settings);
  const groups = clients[0]!.groups;
  const card = (title: string) => ({ title, description: 'As sent', group_id: groups[0] });
  const create = (title: string, outcome: Partial<Sent>) => sent('cards.create', card(title), outcome);
  const placing = (position: number) => ({ groups: groups.map((id) => ({ id, position })) });
  expect(await findViolations(settings, [])).toEqual([]);
  await readRows(
    settings,
    sql`
      with tenant as (select project_id, platform_id, id as group_id from groups where id = ${groups[0]}),
      stored (id, title, description, is_deleted) as (values
        (9001, 'kept', 'As sent', false), (9002, 'twice', 'As sent', false), (9003, 'twice', 'As sent', false),
        (9004, 'refused', 'As sent', false), (9005, 'uncertain', 'As sent', false), (9006, 'changed', 'Otherwise', false),
        (9007, 'not deleted', 'As sent', false), (9008, 'gone', 'As sent', true)),
      made as (
        insert into cards (id, project_id, platform_id, group_id, title, description, deleted_at)
        select stored.id, project_id, platform_id, group_id, title, description, case when is_deleted then now() end from stored, tenant
      ), copy as (
        insert into cards (id, project_id, platform_id, title, master_card_id)
        select 9009, project_id, platform_id, 'Copy', (select min(c.id) from cards c join groups g on g.id = c.group_id where g.board_id = ${masterBoards[0]}) from tenant
      ), noted as (
        insert into events (type, project_id, surface, subject_id, data)
        select 'card.created', project_id, 'rest', stored.id, ${CARD_DATA} from stored, tenant where stored.id <> 9002
        union all select 'card.created', project_id, 'rest', 9900, ${CARD_DATA} from tenant
      ), moved as (
        update groups set position = 7 where id = ${groups[1]}
      )
      update subscriptions set status = 'paid', paid_at = now(), plan_id = (select min(id) from plans) where id = (select min(id) from subscriptions)`,
  );

  const violations = await findViolations(settings, [
    create('kept', { id: 9001 }),
    create('twice', { id: 9002 }),
    create('refused', { outcome: 'refused', status: 422 }),
    create('never sent', { outcome: 'unconnected', code: 'ECONNREFUSED' }),
    create('uncertain', { outcome: 'lost', code: 'ECONNRESET' }),
    create('changed', { id: 9006 }),
    create('missing', { id: 9100 }),
    create('not deleted', { id: 9007 }),
    create('gone', { id: 9008 }),
    sent('cards.delete', { id: 9007 }, { status: 200 }),
    sent('groups.reorder', placing(3), { status: 200 }),
    sent('masterBoards.sync', { board_id: masterBoards[1] }, { status: 200 }),
    create('unknown status', { outcome: 'refused', status: 503, undocumented: ['The status is not listed.'] }),
    create('no answer', { outcome: 'lost', code: 'NO_ANSWER' }),
  ]);

  const shortened = (line: string) => line.replace(/^rest .*?"(title|id|groups|board_id)":"?([\w ]*).*?(?=: )/, '$2');
  expect(violations.map(shortened)).toEqual([
    'unknown status: The status is not listed.',
    'no answer: never answered',
    'twice: stored 2 times',
    'refused: stored, though not acknowledged',
    expect.stringContaining('changed: stored as {"id":9006'),
    'missing: lost',
    '9007: not deleted',
    'card 9008 is deleted without a request',
    `groups ${groups} are at 0,7,0,0, which no possible reorder sent`,
    `${masterBoards[1]}: 6 cards are not in every project`,
    expect.stringMatching(`partial copy of a master board: {"board_id":${masterBoards[0]},.*"cards":1}`),
    expect.stringMatching(/subscription \d+ is paid with 0 paid checkouts/),
    expect.stringMatching(/subscription \d+ has the plan of another checkout/),
    'card 9002 has 0 events of its creation',
    expect.stringMatching(/^event \d+ of a row that is not there$/),
    'card 9008 is deleted with 0 events',
  ]);
});

it('the check of upgrades reports lost, duplicate and changed cards, comments and templates', async () => {
  const { settings } = place;
  const { clients, masterGroup } = await makeWorld(settings);
  const [group, other] = clients[0]!.groups;
  await readRows(
    settings,
    sql`
      with tenant as (select project_id, platform_id from groups where id = ${group}),
      made as (
        insert into cards (id, project_id, platform_id, group_id, title, priority)
        select card.id, project_id, platform_id, card.group_id, card.title, 'high' from tenant, (values
          (9101, ${group}::int, 'as sent'), (9102, ${other}::int, 'moved'), (9103, ${group}::int, 'not moved'),
          (9104, ${group}::int, 'double'), (9105, ${group}::int, 'double')) as card (id, group_id, title)
      )
      insert into cards (id, is_master, group_id, title) values (9106, true, ${masterGroup}, 'pushed')`,
  );
  const create = (id: number, title: string) => [
    sent('cards.create', { title, group_id: group }, { id }),
    sent('cards.update', { id, priority: 'high' }, {}),
  ];
  const move = (id: number) => sent('cards.move', { id, group_id: other }, {});

  const database = await connect(readSettings(settings));
  const changed = await findChanged(database.db, [
    ...create(9101, 'as sent'),
    ...create(9102, 'moved'),
    move(9102),
    ...create(9103, 'not moved'),
    move(9103),
    ...create(9104, 'double'),
    ...create(9190, 'missing'),
    sent('cards.create', { title: 'refused' }, { outcome: 'refused', status: 500 }),
    sent('comments.create', { comment: 'missing', card_id: 9101 }, { id: 9191 }),
    sent('masterCards.create', { title: 'pushed' }, { id: 9106 }),
  ]).finally(() => database.close());

  expect(changed).toEqual([
    'cards 9105 is stored, though it was acknowledged as another row',
    expect.stringContaining('cards 9103 is stored as {"id":9103'),
    'cards 9190 is lost',
    'comments 9191 is lost',
    expect.stringContaining('templates 9106 is stored as {"id":9106'),
  ]);
});

it('the check of deliveries reports missing events and a wrong order, not repeats and events of before', () => {
  expect(compareDelivered(['2', '3'], new Set(['1', '2', '3']))).toEqual([]);
  expect(compareDelivered(['2', '3', '4'], new Set(['2', '4']))).toEqual([
    '1 of 3 events were never delivered, the first is 3',
  ]);
  expect(compareDelivered(['2', '3'], new Set(['3', '2']))).toEqual(['event 3 was delivered before event 2']);
});
