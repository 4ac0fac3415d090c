import { z } from 'zod';
import { text } from '../../shared/fields.ts';
import { accessError } from '../domain/access/access.ts';
import type { Caller } from '../domain/access/context.ts';
import { findProcedure, type Procedure, procedures } from './procedures.ts';
import { inputSchemaOf, type Schema } from './toolSchema.ts';

/** A tool of assistants, as MCP lists it. Without output schemas, which would be most of the list: models read the answer. */
export type Tool = {
  name: string;
  title: string;
  description: string;
  inputSchema: Schema;
  annotations: { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean };
};

export const OperationSearch = z.object({
  query: text(200).meta({ description: 'Words of what you want to do.', example: 'invite member' }),
});

export type OperationSearch = z.output<typeof OperationSearch>;

export const OperationCall = z.object({
  name: text(100).meta({ description: 'The name of an operation, from operations_search.', example: 'boards.update' }),
  input: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ description: 'Its input, as `input_schema` of operations_search describes it.' }),
});

export type OperationCall = z.output<typeof OperationCall>;

export const SEARCH: Tool = {
  name: 'operations_search',
  title: 'Search operations',
  description:
    'Finds operations that have no tool of their own, by words of their names and descriptions. Call one with operations_call.',
  inputSchema: inputSchemaOf(OperationSearch),
  annotations: { readOnlyHint: true, openWorldHint: false },
};

export const CALL: Tool = {
  name: 'operations_call',
  title: 'Call an operation',
  description: 'Calls any operation by its name. Look up its input with operations_search first.',
  inputSchema: inputSchemaOf(OperationCall),
  annotations: { readOnlyHint: false, destructiveHint: true },
};

const toolNameOf = ({ name }: Procedure) => name.replace('.', '_');

/** A description with the names of tools instead of those of procedures: `cards_move` for `cards.move`. */
function inTools(text: string): string {
  return text.replace(/\b[a-zA-Z]+\.[a-zA-Z]+\b/g, (name) => {
    const procedure = findProcedure(name);
    return procedure?.isTool ? toolNameOf(procedure) : name;
  });
}

const offered = procedures.filter(({ isTool }) => isTool).map((procedure) => ({ procedure, tool: toolOf(procedure) }));

const byToolName = new Map(offered.map(({ procedure, tool }) => [tool.name, procedure]));

/** What assistants can call: a secret in an answer would be in their context, and whoever steers them could send it elsewhere. */
const operations = procedures.filter(({ hasSecret }) => !hasSecret);

const byName = new Map(operations.map((procedure) => [procedure.name, procedure]));

/** The procedure that `operations_call` names. */
export const findOperation = (name: string): Procedure | undefined => byName.get(name);

/** The procedure behind a tool. */
export const findToolProcedure = (name: string): Procedure | undefined => byToolName.get(name);

/** The tools that a caller may call. */
export const toolsFor = (caller: Caller): Tool[] => [
  ...offered.filter(({ procedure }) => !accessError(caller, procedure)).map(({ tool }) => tool),
  SEARCH,
  CALL,
];

/** Enough to choose from: each has its whole input schema. */
const MOST_FOUND = 8;

/** The operations that a caller may call and that have most of these words; a word in a name or summary counts more. */
export function searchOperations(caller: Caller, { query }: OperationSearch) {
  const words = query
    .toLowerCase()
    .split(/[^a-z\d]+/)
    // Shorter ones are in most texts.
    .filter((word) => word.length > 2)
    .map(stemOf);
  const found = operations
    .filter((procedure) => !accessError(caller, procedure))
    .map((procedure) => ({ procedure, score: scoreOf(procedure, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST_FOUND);
  return {
    operations: found.map(({ procedure }) => {
      const { name, summary, type, input } = procedure;
      const description = inTools(procedure.description);
      return {
        name,
        summary,
        description,
        is_read_only: type === 'query',
        input_schema: inputSchemaOf(input, inTools),
      };
    }),
  };
}

function scoreOf({ name, summary, description }: Procedure, words: string[]): number {
  const heading = `${name.replace(/[A-Z]/g, ' $&')} ${summary}`.toLowerCase();
  const all = description.toLowerCase();
  const scores = words.map((word) => (heading.includes(word) ? 3 : all.includes(word) ? 1 : 0));
  return scores.reduce((sum: number, score) => sum + score, 0);
}

/** `cards` finds `card`, too. */
const stemOf = (word: string) => (word.length > 3 ? word.replace(/s$/, '') : word);

function toolOf(procedure: Procedure): Tool {
  const { summary, description, type, input } = procedure;
  return {
    name: toolNameOf(procedure),
    title: summary,
    description: inTools(description),
    inputSchema: inputSchemaOf(input, inTools),
    annotations: type === 'query' ? { readOnlyHint: true, openWorldHint: false } : changeHints(procedure),
  };
}

function changeHints({ name, isDestructive }: Procedure): Tool['annotations'] {
  return {
    readOnlyHint: false,
    destructiveHint: isDestructive,
    idempotentHint: /\.(update|move|delete|remove)$/.test(name),
    openWorldHint: false,
  };
}
