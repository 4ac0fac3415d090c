import { readFile } from 'node:fs/promises';
import { expect, it, vi } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { inputFor } from '../../server/contract/input.ts';
import { entities } from '../../server/database/entities.ts';
import { statementNames } from '../../server/database/preparedStatements.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import { overRest, overRpc } from '../harness/surfaces.ts';
import { givenWorld, type World } from '../harness/world.ts';

/** Tables that a sharded database would have on every server, or in a place of their own: they belong to no platform. */
const OF_NO_PLATFORM = new Set([
  'users',
  'sessions',
  'recovery_codes',
  'api_keys',
  'idempotency_keys',
  'idempotency_usage',
  'identity_issuers',
  'identity_rules',
  'identity_tokens_used',
  'mails',
  'mail_links',
  'platforms',
  'plans',
  'template_runs',
  'template_rows',
  'releases',
  'release_rows',
  'rollouts',
]);
const OF_A_PLATFORM = entities.map(({ meta }) => meta.tableName).filter((table) => !OF_NO_PLATFORM.has(table));

const FROM = /\b(?:from|join|update|into|using) "?(\w+)"?/gi;
const BY_ID = /\b(?:\w+_)?id"?(?: = | in \(| is not distinct from | = any ?\()(?:select )?\$\d+/;
/** The copies of a template, which are in all platforms. */
const BY_TEMPLATE = /master_(?:board|group|card)_id"? = /;
/** Templates themselves belong to no platform. */
const OF_TEMPLATES = /\bis_master\b(?!"? is false)/;

/** Events are sent with the ids of their projects and platforms. */
const EVENTS = /^ ?with noted as \( insert into events /;

/** Whether a statement reads or changes rows without the id of a project, a platform or one of their rows. */
function isCrossing(statement: string): boolean {
  const text = statement.replace(/\s+/g, ' ');
  if (EVENTS.test(text)) return false;
  const tables = [...text.matchAll(FROM)].map(([, table]) => table!);
  if (
    !tables.some((table) => OF_A_PLATFORM.includes(table)) ||
    /^ ?insert into "?\w+"? \([^)]*\) (values|select \$)/.test(text)
  )
    return false;
  if (BY_TEMPLATE.test(text)) return true;
  return !BY_ID.test(text) && (!OF_TEMPLATES.test(text) || tables.includes('projects'));
}

async function crossingOf(procedure: Procedure, world: World): Promise<string[]> {
  const input = inputFor(procedure, await givenStartState(procedure, world));
  const sent = vi.spyOn(statementNames, 'of');
  await (procedure.rest ? overRest : overRpc)(allowedCaller(world, procedure), procedure, input);
  const statements = sent.mock.calls.map(([statement]) => statement);
  sent.mockRestore();
  return statements.filter(isCrossing);
}

it('docs/scaling.md lists the procedures with statements that cross platforms', async () => {
  const crossing: string[] = [];
  // Queries change nothing, so they share one.
  const reading = await givenWorld();
  for (const procedure of procedures) {
    const world = procedure.type === 'query' ? reading : await givenWorld();
    const statements = await crossingOf(procedure, world);
    if (statements.length > 0) crossing.push(procedure.name);
  }

  const page = await readFile(new URL('../../docs/scaling.md', import.meta.url), 'utf8');
  const [, listed = ''] = /^Across platforms:([\s\S]*?)\n\n/m.exec(page) ?? [];
  expect([...listed.matchAll(/`([\w.]+)`/g)].map(([, name]) => name)).toEqual(crossing);
}, 180_000);
