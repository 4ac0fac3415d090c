import type { Schema } from '../../server/api/openapi/example.ts';

/** Every schema of the document, nested ones included, each with its path. */
export function schemasIn(node: unknown, place: string): { place: string; schema: Schema }[] {
  if (typeof node !== 'object' || node === null) return [];
  const within = Object.entries(node).flatMap(([key, part]) =>
    key === 'example' || key === 'examples' ? [] : schemasIn(part, `${place}/${key}`),
  );
  const isSchema = '$ref' in node || 'anyOf' in node || ('type' in node && typeof node.type !== 'object');
  return isSchema ? [{ place, schema: node as Schema }, ...within] : within;
}
