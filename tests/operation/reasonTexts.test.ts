import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getTRPCErrorFromUnknown } from '@trpc/server';
import { describe, expect, it } from 'vitest';
import { documentedReasons } from '../../server/contract/documentedReasons.ts';
import { toFailure } from '../../shared/errors.ts';
import { REASONS } from '../../shared/reasons.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('the reasons of errors', () => {
  it('are in the table of docs/errors.md, each once, with the same meaning', () => {
    const documented = [...documentedReasons].map(([name, { meaning }]) => [name, meaning]);

    expect(documented).toEqual(Object.entries(REASONS));
  });

  it('are used by the server', () => {
    const sources = readdirSync(join(ROOT, 'server'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join('server', path));
    const code = [...sources, 'shared/errors.ts'].map((path) => readFileSync(join(ROOT, path), 'utf8')).join('\n');

    expect(Object.keys(REASONS).filter((name) => !code.includes(`'${name}'`))).toEqual([]);
  });

  it('have names that stay readable in a header and in code', () => {
    for (const name of Object.keys(REASONS)) expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });
});

describe('the reason of an error that nobody threw on purpose', () => {
  it.each([
    [500, 'fault', new Error('A bug.')],
    [500, 'fault', new SyntaxError('Unexpected token of our own, not of the body')],
    [500, 'disk_full', Object.assign(new Error('could not extend file'), { code: '53100' })],
    [429, 'service_busy', Object.assign(new Error('too many connections'), { code: '53300' })],
    [429, 'service_busy', new Error('timeout exceeded when trying to connect')],
  ])('%i %s for %s', (status, reason, error) => {
    expect(toFailure(error)).toMatchObject({ status, reason });
    expect(toFailure(getTRPCErrorFromUnknown(error))).toMatchObject({ status, reason });
  });
});
