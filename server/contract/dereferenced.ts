import type { OpenApiDocument } from '../api/openapi/document.ts';

type Node = Record<string, unknown>;

/** A document whose references are replaced by what they refer to: one to a schema around it makes a circle. */
export function dereferenced(document: OpenApiDocument): OpenApiDocument {
  const copies = new Map<unknown, unknown>();
  const completions: (() => void)[] = [];

  const copyOf = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null) return node;
    if (copies.has(node)) return copies.get(node);
    const { $ref, ...beside } = node as Node;
    const target = typeof $ref === 'string' ? copyOf(found(document, $ref)) : undefined;
    if (target && Object.keys(beside).length === 0) return target;
    const copy: object = Array.isArray(node) ? [] : {};
    copies.set(node, copy);
    for (const [name, part] of Object.entries(target ? beside : node)) Object.assign(copy, { [name]: copyOf(part) });
    // Within a circle, the target is not complete yet.
    if (target) completions.push(() => Object.assign(copy, { ...target, ...copy }));
    return copy;
  };

  const { paths, webhooks, components } = document;
  const copy = { ...document, ...(copyOf({ paths, webhooks }) as OpenApiDocument) };
  copy.components = { ...components, headers: copyOf(components?.headers) };
  for (const complete of completions) complete();
  return copy;
}

function found(document: OpenApiDocument, reference: string): unknown {
  const names = reference.split('/').slice(1);
  const target = names.reduce<unknown>((node, name) => (node as Node | undefined)?.[unescaped(name)], document);
  if (target === undefined) throw new Error(`${reference} is not in the document.`);
  return target;
}

/** `~1` is a slash in a JSON pointer. */
const unescaped = (name: string) => name.replaceAll('~1', '/').replaceAll('~0', '~');
