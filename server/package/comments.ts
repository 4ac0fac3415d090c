import { inspect } from 'node:util';
import { requestExamples } from '../../shared/requestExample.ts';
import { deprecationInWords } from '../api/deprecation.ts';
import { type OpenApiDocument, openApiDocument } from '../api/openapi/document.ts';
import type { Procedure } from '../api/procedures.ts';
import { ACCESS } from '../domain/access/access.ts';
import { scopesFor } from '../domain/access/scopes.ts';
import { limitsInWords } from './limits.ts';
import type { Schema } from './schema.ts';

/** The doc comments (TSDoc) of the printed types. */

const WIDEST_LINE = 110;
/** Comments of nested fields are indented. */
const WIDEST_TEXT = 100;

/** A comment on one line if it is short; paragraphs are wrapped, and code is not. */
export function comment(...paragraphs: string[]): string {
  const texts = paragraphs.map((text) => text.replaceAll('*/', '*\\/'));
  const [first = '', ...others] = texts;
  if (others.length === 0 && first.length <= WIDEST_TEXT) return `/** ${first} */\n`;
  const lines = texts.flatMap((text, index) => [...(index > 0 ? [''] : []), ...linesOf(text)]);
  return `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join('\n')}\n */\n`;
}

const linesOf = (text: string) => (text.startsWith('@') ? text.split('\n') : wrapped(text));

function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > WIDEST_TEXT) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

/** What a field means, and its limits unless its description names them. */
export function commentOnField(field: Schema, models: Record<string, Schema>): string {
  const description = field.description ?? models[field.$ref?.split('/').at(-1) ?? '']?.description;
  if (!description) return '';
  return comment([description, ...limitsInWords(field, description)].join(' '));
}

/** What a procedure does, who may call it, and a call of it. */
export function commentOnCall(procedure: Procedure, output: Schema): string {
  const { summary, description, access, deprecated } = procedure;
  const permission = [ACCESS[access].callers, ...keysFor(procedure)].join(' ');
  const notice = deprecated ? [`@deprecated ${deprecationInWords(deprecated, deprecated.use)}`] : [];
  return comment(`${summary}.`, description, permission, ...notice, exampleOf(procedure, output));
}

function keysFor(procedure: Procedure): string[] {
  const scopes = scopesFor(procedure);
  if (!scopes) return ["An API key can't call it."];
  if (scopes.length === 0) return [];
  return [`An API key needs the ${scopes.length > 1 ? 'scopes' : 'scope'} \`${scopes.join('` and `')}\`.`];
}

/** The request of the OpenAPI document, as a call of the client. */
function exampleOf(procedure: Procedure, output: Schema): string {
  const method = `client.${procedure.name}.${procedure.type === 'query' ? 'query' : 'mutate'}`;
  const call = (input: string) =>
    procedure.type === 'subscription'
      ? `for await (const event of client.${procedure.name}(${input})) console.log(event);`
      : `${receiverOf(output)}await ${method}(${input});`;
  return ['@example', '```ts', withInput(call, requestOf(procedure)), '```'].join('\n');
}

/** Names the fields of a result with few of them. */
function receiverOf({ $ref, properties = {} }: Schema): string {
  const fields = Object.keys(properties);
  if (fields.length === 0 && !$ref) return '';
  return $ref || fields.length > MOST_NAMED ? 'const result = ' : `const { ${fields.join(', ')} } = `;
}
const MOST_NAMED = 3;

/** On one line if it fits. */
function withInput(call: (input: string) => string, request: unknown): string {
  if (request === undefined) return call('');
  const line = inspect(request, { depth: null, breakLength: Infinity });
  if (call(line).length <= WIDEST_LINE) return call(line);
  return call(inspect(request, { depth: null, breakLength: Math.min(line.length - 1, WIDEST_LINE) }));
}

/** A request that is built from the examples of its fields has null for what need not be sent. */
function requestOf({ input, rest }: Procedure): unknown {
  const request = input && requestExamples.get(input);
  if (request) return request.example;
  const built = rest && document().paths[rest.path]!.post.requestBody?.content['application/json'].example;
  return built && Object.fromEntries(Object.entries(built).filter(([, value]) => value !== null));
}

let made: OpenApiDocument | undefined;
const document = () => (made ??= openApiDocument());
