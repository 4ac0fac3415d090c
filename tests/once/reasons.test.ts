import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REASONS } from '../../shared/reasons.ts';
import { documentedReasons } from '../harness/errorsPage.ts';

const SERVER = join(import.meta.dirname, '../../server');

describe('the reasons of errors', () => {
  it('are in the table of docs/errors.md, each once, with the same meaning', () => {
    const documented = [...documentedReasons].map(([name, { meaning }]) => [name, meaning]);

    expect(documented).toEqual(Object.entries(REASONS));
  });

  it('are used by the server', () => {
    const sources = readdirSync(SERVER, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
    const code = sources.map((path) => readFileSync(join(SERVER, path), 'utf8')).join('\n');

    expect(Object.keys(REASONS).filter((name) => !code.includes(`'${name}'`))).toEqual([]);
  });

  it('have names that stay readable in a header and in code', () => {
    for (const name of Object.keys(REASONS)) expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });
});
