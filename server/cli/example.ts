import type { z } from 'zod';
import { requestExamples } from '../../shared/requestExample.ts';
import { exampleOf } from '../api/openapi/example.ts';
import type { Procedure } from '../api/procedures.ts';
import type { Access } from '../domain/access/access.ts';
import type { Definition, Example } from './command.ts';
import { optionsOf, schemaOfOptions } from './inputOptions.ts';
import type { Option } from './options.ts';

/** Undefined for what needs an API key. */
export function exampleFor({ input, access }: Procedure): Example | undefined {
  const email = DEMO_USERS[access];
  if (email === undefined) return undefined;
  return { fields: (input && requestExamples.get(input)?.example) ?? exampleOfRequired(input), email };
}

/** The address of a service with the default settings. */
export const EXAMPLE_URL = 'http://127.0.0.1:3000';

/** The example at the end of a command's help, with the login that it needs. */
export function exampleLine(name: string, command: Definition): string {
  const example = command.example?.();
  if (!example) return '';
  const words = exampleWords(command).map(quoted).join(' ');
  return `

For example, while the service runs with the demo data:
  npx deckhand login --url ${EXAMPLE_URL} --email ${example.email}
  npx deckhand ${name} ${words}`;
}

/** The words of an example after the name of the command. */
export function exampleWords(command: Definition): string[] {
  const { operands = [] } = command;
  const { fields = {} } = command.example?.() ?? {};
  const options = optionsOf(command);
  const words = Object.entries(fields).flatMap(([field, value]) =>
    options
      .filter((option) => option.field === field)
      .flatMap((option) => (operands.includes(option.flag) ? [String(value)] : wordsFor(option, value))),
  );
  return [...words, '--url', EXAMPLE_URL];
}

function wordsFor({ flag, kind, isRequired }: Option, value: unknown): string[] {
  // A required secret is prompted for without an option.
  if (kind === 'secret') return isRequired ? [] : [`--${flag}`];
  if (kind === 'yes-no') return [value ? `--${flag}` : `--no-${flag}`];
  return [`--${flag}`, textOf(kind, value)];
}

function textOf(kind: Option['kind'], value: unknown): string {
  if (value === null) return '';
  if (kind === 'rows' || kind === 'object') return JSON.stringify(value);
  if (kind !== 'positions') return String(value);
  return (value as { id: number; position: number }[]).map(({ id, position }) => `${id}:${position}`).join(',');
}

/** For a shell. */
const quoted = (word: string) => (/^[\w@.,:+/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** A demo user who may call operations of each access level. */
const DEMO_USERS: Partial<Record<Access, string>> = {
  signedIn: 'member@demo.test',
  viewer: 'member@demo.test',
  member: 'member@demo.test',
  ownerOrSuperadmin: 'owner@demo.test',
  billing: 'owner@demo.test',
  superadmin: 'admin@demo.test',
};

function exampleOfRequired(input: z.ZodType | undefined): object {
  const { properties = {}, required = [] } = schemaOfOptions(input);
  return Object.fromEntries(required.map((field) => [field, exampleOf(properties[field] ?? {}, {})]));
}
