import { writeFile } from 'node:fs/promises';
import { toFailure } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import type {
  ExportedTemplate,
  TemplateFileChange,
  TemplateFilePlan,
  TemplateFileResult,
} from '../../shared/templateFile.ts';
import { counted } from '../runtime/count.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { withCalls } from './calls.ts';
import type { Call, Given, Outcome } from './command.ts';
import { misuse, withExitCode } from './misuse.ts';
import { readTemplate, writtenTemplate } from './templateYaml.ts';
import { confirm } from './terminal.ts';

/** Master boards as files: `templates export`, `plan` and `apply`. */

const HAS_CHANGES = 3;
const HAS_CONFLICTS = 4;

type Options = { board_id: number; file?: string; plan?: string; publish?: boolean; note?: string };

export function exportFile(given: Given): Promise<Outcome> {
  const { board_id, file } = given.input as Options;
  return withCalls(given, isQuery, async (call) => {
    const { template } = (await call('templateFiles.export', { board_id })) as { template: ExportedTemplate };
    const text = writtenTemplate(template);
    if (file === undefined) return { result: template, message: text.trimEnd() };
    await writeFile(file, text).catch((error: Error) => {
      throw startFailure(`${file} can't be written: ${error.message}.`);
    });
    return { result: { file }, message: `Wrote ${file}.` };
  });
}

export async function planFile(given: Given): Promise<Outcome> {
  const { file } = given.input as { file: string };
  const template = await readTemplate(file);
  return withCalls(given, isQuery, async (call) => {
    const planned = await plan(call, template);
    if (planned.changes.length === 0) return { result: planned, message: NOTHING };
    const next = `Apply it: npx deckhand templates apply --file ${file} --plan ${planned.plan}${placeOf(given)}`;
    return { result: planned, message: `${asDiff(planned.changes)}\n\n${next}`, exitCode: HAS_CHANGES };
  });
}

export async function applyFile(given: Given): Promise<Outcome> {
  const { file, plan: required, publish, note } = given.input as Options & { file: string };
  const { chosen, terminal } = given;
  const isAsked = required === undefined && !chosen.yes;
  if (isAsked && !(terminal.canReply && terminal.canSee))
    throw misuse('Give the plan that templates plan printed with --plan ID, or --yes.');
  if (note !== undefined && !publish) throw misuse('--note is the note of a release: give --publish, too.');

  const template = await readTemplate(file);
  return withCalls(given, isQuery, async (call) => {
    const { plan: current, changes, board_id: existing } = await plan(call, template);
    const hasChanges = changes.length > 0;
    if (hasChanges && required !== undefined && required !== current)
      throw withExitCode(
        startFailure(`The plan ${required} is outdated. Nothing was changed. Run templates plan again.`),
        HAS_CONFLICTS,
      );
    if (hasChanges && isAsked) {
      terminal.write(`${asDiff(changes)}\n`);
      await confirm(terminal, 'Apply this?', 'Nothing was changed.');
    }

    const applied = hasChanges
      ? ((await call('templateFiles.import', { template, plan: current }).catch(conflict)) as TemplateFileResult)
      : { board_id: existing! };
    const lines = [
      hasChanges ? `${isAsked ? '' : `${asDiff(changes)}\n\n`}Applied ${counted(changes.length, 'change')}.` : NOTHING,
    ];
    const released = publish
      ? await published(call, applied.board_id, note).catch(notPublished(hasChanges))
      : undefined;
    if (released) lines.push(released.message);
    else if (hasChanges) lines.push('Projects get this with a sync, or with the rollout of a release.');
    return { result: { ...applied, changes, ...released?.result }, message: lines.join('\n') };
  });
}

const NOTHING = 'Nothing to change: the master board is as in the file.';

const isQuery = (procedure: string) => procedure === 'templateFiles.export' || procedure === 'templateFiles.plan';

const plan = async (call: Call, template: unknown) =>
  (await call('templateFiles.plan', { template }).catch(conflict)) as TemplateFilePlan;

/** Passes on an error; with its exit code if the master board has changed since the plan, or a card belongs to another one. */
function conflict(error: unknown): never {
  const { reason = toFailure(error).reason } = error as { reason?: Reason };
  throw CONFLICTS.has(reason) ? withExitCode(error, HAS_CONFLICTS) : error;
}
const CONFLICTS = new Set<Reason>(['already_exists', 'unknown_reference']);

async function published(call: Call, board_id: number, note: string | undefined) {
  const result = await call('releases.publish', { board_id, ...(note !== undefined && { note }) });
  const { release, is_new } = result as { release: { number: number }; is_new: boolean };
  const message = is_new ? `Published release ${release.number}.` : `Release ${release.number} has this already.`;
  return { result: { release, is_new }, message };
}

/** Says that the draft has changed, if it has. */
const notPublished =
  (isApplied: boolean) =>
  (error: Error): never => {
    if (isApplied) error.message = `The changes were applied, but not published: ${error.message}`;
    throw error;
  };

/** The options that name where the command acts. */
const placeOf = ({ chosen }: Given) =>
  (['as', 'url'] as const)
    .map((name) => (chosen[name] === undefined ? '' : ` --${name} ${chosen[name] || "''"}`))
    .join('');

const asDiff = (changes: readonly TemplateFileChange[]) => changes.map(asLine).join('\n');

/** `+ card say-hello "Say hello"`, `~ card say-hello: title "Hello" → "Say hello"`, `- group first-steps "First steps"`. */
function asLine({ noun, key, title, change, fields }: TemplateFileChange): string {
  const row = `${noun} ${key}`;
  if (change === 'created') return `+ ${row} ${JSON.stringify(title)}`;
  if (change === 'deleted') return `- ${row} ${JSON.stringify(title)}`;
  return `~ ${row}: ${fields.map(asText).join(', ')}`;
}

function asText({ field, before, after }: TemplateFileChange['fields'][number]): string {
  const [old, now] = [before, after].map((value) => JSON.stringify(value) ?? 'null') as [string, string];
  if (old.length + now.length <= LONGEST_VALUES) return `${field} ${old} → ${now}`;
  return `${field} (${lengthOf(before)} → ${counted(lengthOf(after), 'character')})`;
}
/** Longer texts are only counted: the file has them. */
const LONGEST_VALUES = 160;
const lengthOf = (value: unknown) => (typeof value === 'string' ? value.length : 0);
