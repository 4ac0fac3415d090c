import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dirname, join as joinPath } from 'node:path/posix';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

const STATIC_IMPORT = /^(?:import|export)\s+(?<type>type\s+)?(?:[^'"`;]*?\sfrom\s+)?['"](?<target>[^'"]+)['"]/gm;
const DYNAMIC_IMPORT = /\bimport\s*\(\s*['"](?<target>[^'"]+)['"]/g;

/** `of` is where its file is, `target` what it names: a path in the repository if it is ours, else a package. */
type Import = { of: string; target: string; isOurs: boolean; isType: boolean };

const paths = ['server', 'shared', 'client', 'tests'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
);
const imports = paths
  .filter((path) => path.endsWith('.ts') && !path.startsWith('tests/'))
  .flatMap((path) => importsOf(path, readFileSync(join(ROOT, path), 'utf8')));

describe('imports', () => {
  it.each<{ rule: string; folder: string; isRefused: (found: Import) => boolean }>([
    {
      rule: 'shared imports nothing else of ours',
      folder: 'shared/',
      isRefused: ({ isOurs, target }) => isOurs && !isIn(target, 'shared/'),
    },
    {
      rule: 'entities import no more than shared',
      folder: 'server/entities/',
      isRefused: ({ isOurs, target }) => isOurs && !isIn(target, 'shared/', 'server/entities/'),
    },
    {
      rule: 'limits import nothing else of ours',
      folder: 'server/limits/',
      isRefused: ({ isOurs, target }) => isOurs && !isIn(target, 'server/limits/'),
    },
    {
      rule: 'security imports only shared, limits and errors',
      folder: 'server/security/',
      isRefused: ({ isOurs, target }) =>
        isOurs && !isIn(target, 'shared/', 'server/limits/', 'server/security/', 'server/errors.ts'),
    },
    {
      rule: 'the domain knows of no surface',
      folder: 'server/domain/',
      isRefused: ({ target, isType }) =>
        isIn(target, 'server/http/', 'server/routers/', 'server/app.ts', 'fastify', '@fastify/', '@trpc/') ||
        (isIn(target, 'server/trpc.ts') && !isType),
    },
    {
      rule: 'routers know of no database or server',
      folder: 'server/routers/',
      isRefused: ({ target }) =>
        isIn(target, 'server/database/', 'server/entities/', 'kysely', '@mikro-orm/') ||
        isIn(target, 'server/http/', 'server/app.ts', 'fastify', '@fastify/'),
    },
    {
      rule: 'the client imports the server as types; only what packs it runs any of it',
      folder: 'client/',
      isRefused: ({ of, target, isType }) => isIn(target, 'server/') && !isType && !isIn(of, 'client/package/'),
    },
    {
      rule: 'nothing imports tests',
      folder: '',
      isRefused: ({ target }) => isIn(target, 'tests/', 'vitest', 'fast-check'),
    },
  ])('$rule', ({ folder, isRefused }) => {
    const found = imports.filter(({ of }) => of.startsWith(folder));

    const refused = found.filter(isRefused).map(({ of, target }) => `${of} imports ${target}`);

    expect(paths.some((path) => path.startsWith(folder))).toBe(true);
    expect(refused).toEqual([]);
  });

  it('are found in every form', () => {
    const source = `import './reference.ts';
import fastify, { type FastifyInstance } from 'fastify';
import {
  behind,
  query,
} from "../database/query.ts";
import type { Card } from '../../shared/card.ts';
import { type Role } from '../../shared/user.ts';
export { Board } from './board.ts';
export type * from './group.ts';
export const said = 'not from here';
  const { Redis } = await import('ioredis');
  const page = import(
    '../http/openapi.ts'
  );`;

    const found = importsOf('server/domain/card.ts', source);

    expect(found.map(({ target, isType }) => (isType ? `type ${target}` : target))).toEqual([
      'server/domain/reference.ts',
      'fastify',
      'server/database/query.ts',
      'type shared/card.ts',
      'shared/user.ts',
      'server/domain/board.ts',
      'type server/domain/group.ts',
      'ioredis',
      'server/http/openapi.ts',
    ]);
  });
});

describe('files and folders', () => {
  it('are named for what is in them', () => {
    const isVague = (name: string) => /^(utils?|helpers?|common|lib)(\.|$)/i.test(name);

    expect(paths.filter((path) => path.split('/').some(isVague))).toEqual([]);
  });

  it('are imported one by one, not through an index.ts', () => {
    expect(paths.filter((path) => /\/index\.[jt]s$/.test(path))).toEqual([]);
  });
});

/** Whether it is one of these files or packages, or inside one of these folders or scopes, which end in a slash. */
function isIn(target: string, ...places: string[]): boolean {
  return places.some((place) => target === place || target.startsWith(place.endsWith('/') ? place : `${place}/`));
}

function importsOf(of: string, source: string): Import[] {
  return [...source.matchAll(STATIC_IMPORT), ...source.matchAll(DYNAMIC_IMPORT)].map(({ groups }) => {
    const { type, target = '' } = groups!;
    const isOurs = target.startsWith('.');
    return { of, target: isOurs ? joinPath(dirname(of), target) : target, isOurs, isType: type !== undefined };
  });
}
