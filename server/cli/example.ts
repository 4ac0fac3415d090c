import type { z } from 'zod';
import { requestExamples } from '../../shared/requestExample.ts';
import { exampleOf } from '../api/openapi/example.ts';
import type { Procedure } from '../api/procedures.ts';
import type { Access } from '../domain/access/access.ts';
import type { Command, Example } from './command.ts';
import { type Option, optionsOf, schemaOf } from './options.ts';

export const exampleFor = ({ input, access }: Procedure): Example => ({
  fields: (input && requestExamples.get(input)?.example) ?? exampleOfRequired(input),
  as: DEMO_USERS[access],
});

/** The example at the end of a command's help. */
export function exampleLine(name: string, command: Command): string {
  if (!command.example) return '';
  const words = exampleWords(command).map(quoted).join(' ');
  return `\n\nFor example, on the demo data:\n  npx deckhand ${`${name} ${words}`.trimEnd()}`;
}

/** The words of an example after the name of the command. */
export function exampleWords({ input, example }: Command): string[] {
  const { fields = {}, as } = example?.() ?? {};
  const options = optionsOf(input);
  const words = Object.entries(fields).flatMap(([field, value]) =>
    options.filter((option) => option.field === field).flatMap((option) => wordsFor(option, value)),
  );
  return [...words, ...(as === undefined ? [] : ['--as', as])];
}

function wordsFor({ flag, kind, isRequired }: Option, value: unknown): string[] {
  // A required secret is prompted for without an option.
  if (kind === 'secret') return isRequired ? [] : [`--${flag}`];
  if (kind === 'yes-no') return [value ? `--${flag}` : `--no-${flag}`];
  return [`--${flag}`, textOf(kind, value)];
}

function textOf(kind: Option['kind'], value: unknown): string {
  if (value === null) return '';
  if (kind === 'rows') return JSON.stringify(value);
  if (kind !== 'positions') return String(value);
  return (value as { id: number; position: number }[]).map(({ id, position }) => `${id}:${position}`).join(',');
}

/** For a shell. */
const quoted = (word: string) => (/^[\w@.,:+/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** Those who may call, on the demo data; what is for superadmins needs no account. */
const DEMO_USERS: Partial<Record<Access, string>> = {
  signedIn: 'member@demo.test',
  viewer: 'member@demo.test',
  member: 'member@demo.test',
  ownerOrSuperadmin: 'owner@demo.test',
  billing: 'owner@demo.test',
};

function exampleOfRequired(input: z.ZodType | undefined): object {
  const { properties = {}, required = [] } = schemaOf(input);
  return Object.fromEntries(required.map((field) => [field, exampleOf(properties[field] ?? {}, {})]));
}
