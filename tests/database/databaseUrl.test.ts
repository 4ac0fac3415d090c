import { describe, expect, it } from 'vitest';
import { databaseNameOf, hostsOf, parseDatabaseUrl } from '../../server/runtime/databaseUrl.ts';
import { readSettings } from '../../server/runtime/env.ts';

const JWT_SECRET = 'a secret for tests that nobody else uses';

describe('DATABASE_URL', () => {
  it.each<[string, string[]]>([
    ['postgresql://user:pass@h1:5432/name', ['postgresql://user:pass@h1:5432/name']],
    ['postgresql:///name?host=/run/postgresql', ['postgresql:///name?host=/run/postgresql']],
    ['postgres://h1,h2/name', ['postgres://h1/name', 'postgres://h2/name']],
    [
      'postgresql://user:p,a@s:s@h1:5432,[::1]:5433,10.0.0.3/name?sslmode=require',
      [
        'postgresql://user:p,a@s:s@h1:5432/name?sslmode=require',
        'postgresql://user:p,a@s:s@[::1]:5433/name?sslmode=require',
        'postgresql://user:p,a@s:s@10.0.0.3/name?sslmode=require',
      ],
    ],
    ['postgresql://h1,h2/name?port=5433', ['postgresql://h1/name?port=5433', 'postgresql://h2/name?port=5433']],
  ])('%s names its servers in order', (url, urls) => {
    expect(readSettings({ DATABASE_URL: url, JWT_SECRET }).DATABASE_URL).toBe(url);
    expect(parseDatabaseUrl(url).urls).toEqual(urls);
  });

  it.each([
    ['postgresql://h1/name', false],
    ['postgresql://h1/name?target_session_attrs=read-write', true],
    ['postgresql://h1,h2/name', true],
    ['postgresql://h1,h2/name?sslmode=require&target_session_attrs=read-write', true],
    ['postgresql://h1,h2/name?target_session_attrs=any', false],
  ])('%s wants servers that accept writes: %s', (url, mustBeWritable) => {
    expect(parseDatabaseUrl(url).mustBeWritable).toBe(mustBeWritable);
  });

  it('is shown without user, password and parameters', () => {
    const url = 'postgresql://user:hunter2@h1:5432,[::1]:5433/name?password=hunter2';

    expect(hostsOf(url)).toBe('h1:5432,[::1]:5433');
    expect(databaseNameOf(url)).toBe('name');
  });
});
