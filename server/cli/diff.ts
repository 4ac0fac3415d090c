import { readFile } from 'node:fs/promises';
import type { OpenApiDocument } from '../api/openapi/document.ts';
import { documentChanges } from '../contract/documentChanges.ts';
import { failureOf } from '../contract/sender.ts';
import { counted } from '../runtime/count.ts';
import type { Given, Outcome } from './command.ts';
import { misuse } from './misuse.ts';

/** Compares two OpenAPI documents, each a file or a URL. */
export async function diff({ input }: Given): Promise<Outcome> {
  const { old, new: current } = input as { old: string; new: string };
  const [before, after] = await Promise.all([readDocument(old), readDocument(current)]);
  const { breaking, additions } = compared(before, after);
  const sections = [
    ...sectionOf('Breaking', breaking),
    ...sectionOf('New', additions),
    breaking.length + additions.length === 0
      ? 'Nothing that callers depend on has changed.'
      : `${counted(breaking.length, 'breaking change')}, ${counted(additions.length, 'addition')}.`,
  ];
  return { result: { breaking, additions }, message: sections.join('\n\n'), hasFailed: breaking.length > 0 };
}

/** A document may be JSON of the right version, and still be broken inside. */
function compared(before: OpenApiDocument, after: OpenApiDocument) {
  try {
    return documentChanges(before, after);
  } catch (error) {
    throw misuse(`The documents can't be compared: ${(error as Error).message}`);
  }
}

const sectionOf = (title: string, lines: string[]) =>
  lines.length === 0 ? [] : [[`${title}:`, ...lines.map((line) => `- ${line}`)].join('\n')];

async function readDocument(place: string): Promise<OpenApiDocument> {
  const text = await (/^https?:/.test(place) ? download(place) : readFile(place, 'utf8')).catch((error: Error) => {
    throw misuse(`${place} can't be read: ${failureOf(error)}.`);
  });
  try {
    const document: OpenApiDocument = JSON.parse(text);
    if (document.paths && /^3\.1\./.test(document.openapi))
      return { ...document, components: document.components ?? { schemas: {} } };
  } catch {}
  throw misuse(`${place} is not an OpenAPI 3.1 document in JSON.`);
}

async function download(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(LONGEST_DOWNLOAD_MILLISECONDS) });
  if (!response.ok) throw new Error(`the response is a ${response.status}`);
  return response.text();
}
const LONGEST_DOWNLOAD_MILLISECONDS = 30_000;
