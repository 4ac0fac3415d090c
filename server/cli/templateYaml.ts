import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { Document, isScalar, LineCounter, parseDocument, type Range, Scalar, visit } from 'yaml';
import { type ExportedTemplate, FILE_SCHEMA_NAME } from '../../shared/templateFile.ts';
import { misuse } from './misuse.ts';
import { visible } from './visible.ts';

/** Reads and writes template files, which are YAML. */

/** As large as a request may be. */
const LARGEST_FILE_BYTES = 1024 * 1024;

/** The content of a file, which the service checks. */
export async function readTemplate(file: string): Promise<unknown> {
  // One byte more than allowed, of whatever has more.
  const bytes = await buffer(createReadStream(file, { end: LARGEST_FILE_BYTES })).catch((error: Error) => {
    throw misuse(`${file} can't be read: ${error.message}.`);
  });
  if (bytes.length > LARGEST_FILE_BYTES) throw misuse(`${file} is too large: a template file has at most 1 MiB.`);
  return parseTemplate(bytes.toString('utf8'), file);
}

export function parseTemplate(text: string, file: string): unknown {
  const lines = new LineCounter();
  // The package would compare each key of a map with all others.
  const document = parseDocument(text, { schema: 'core', uniqueKeys: false, lineCounter: lines });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem) {
    // The other lines show the place in the file.
    const [message = ''] = problem.message.split('\n');
    throw misuse(`${file} can't be read: ${message.replace(/; please use \S+|:$/g, '')}.`);
  }

  const placeOf = ({ range }: { range?: Range | null }) => {
    const { line, col } = lines.linePos(range?.[0] ?? 0);
    return `at line ${line}, column ${col}`;
  };
  visit(document, {
    Alias: (_, alias) => {
      throw misuse(`${file} can't be read: Aliases are not allowed ${placeOf(alias)}. Write the value out.`);
    },
    Map: (_, { items }) => {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) throw misuse(`${file} can't be read: Map keys must be unique ${placeOf(key)}.`);
        seen.add(key.value);
      }
    },
  });
  return document.toJS({ maxAliasCount: 0 });
}

/** Descriptions are blocks of text; the order is always the same. */
export function writtenTemplate(template: ExportedTemplate): string {
  const document = new Document(template, { aliasDuplicateObjects: false });
  document.commentBefore = ` yaml-language-server: $schema=${FILE_SCHEMA_NAME}`;
  visit(document, {
    Pair: (_, { key, value }) => {
      if (!isScalar(value) || typeof value.value !== 'string') return;
      const isLong = (isScalar(key) && key.value === 'description') || value.value.includes('\n');
      // A terminal shows such characters as codes, which are the same text only within quotes.
      const needsQuotes = visible(value.value) !== value.value;
      if (needsQuotes) value.type = Scalar.QUOTE_DOUBLE;
      else if (isLong) value.type = Scalar.BLOCK_LITERAL;
    },
  });
  return document.toString({ lineWidth: 0 });
}
