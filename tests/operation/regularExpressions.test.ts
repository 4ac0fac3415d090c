import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript-5';
import { describe, expect, it } from 'vitest';

/** A repeated group with a repetition inside, as in `(a+)*`, can take exponential time: some input of 30 characters never ends. */

const ROOT = join(import.meta.dirname, '../..');
const sources = ['server', 'client', 'shared'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(ts|js)$/.test(path))
    .map((path) => `${folder}/${path}`),
);

describe('regular expressions', () => {
  it('of the sources repeat no group that has a repetition in it', () => {
    const found = sources.flatMap((path) =>
      expressionsIn(readFileSync(join(ROOT, path), 'utf8')).map((text) => ({ path, text })),
    );

    expect(found.length).toBeGreaterThan(50);
    expect(found.filter(({ text }) => hasNestedRepetition(text))).toEqual([]);
  });

  it('are told apart', () => {
    const nested = ['([\\w-]+(\\.[\\w-]+)*/?)*', '^(a+)+$', '(?:a*b?)*', '(a{2,})+', '((a)|b+){3,}'];
    const others = ['(a{0,61}b)*', '(ab?)*', '[(a+)*]+', '\\(a+\\)*', "'(?:[^']|'')*'", '(?<year>\\d+)-(a)*', '(a+)?'];

    expect([...nested, ...others].filter(hasNestedRepetition)).toEqual(nested);
  });

  it('are found in every form', () => {
    const source = `/a+/g.test(b); new RegExp(\`^\${c}\\\\w*$\`); new RegExp('d')`;

    expect(expressionsIn(source)).toEqual(['a+', '^\\w*$', 'd']);
  });
});

/** Literals, and the fixed parts of those that are put together. */
function expressionsIn(source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) found.push(node.text.slice(1, node.text.lastIndexOf('/')));
    if (ts.isNewExpression(node) && node.expression.getText() === 'RegExp') found.push(textOf(node.arguments![0]!));
    node.forEachChild(visit);
  };
  visit(ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true));
  return found;
}

function textOf(node: ts.Node): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return '';
  return [node.head, ...node.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join('');
}

function hasNestedRepetition(expression: string): boolean {
  const simple = expression.replaceAll(/\\./gs, 'x').replaceAll(/\[[^\]]*\]/g, 'x');
  /** For each open group, whether it has a repetition. */
  const groups = [false];
  for (const [token] of simple.matchAll(/\(|\)(?:[*+]|\{\d+,\})?|[*+]|\{\d+,\}/g)) {
    if (token === '(') {
      groups.push(false);
      continue;
    }
    const isRepeated = token.startsWith(')') && groups.pop()!;
    if (isRepeated && token !== ')') return true;
    if (isRepeated || token !== ')') groups[groups.length - 1] = true;
  }
  return false;
}
