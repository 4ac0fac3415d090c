import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dirname, join as joinPath } from 'node:path/posix';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/**
 * The rooms of the code, from the bottom to the top; docs/architecture.md draws the main ones. A file imports only from its own
 * room and from rooms below. Rooms in one line don't know each other.
 */
const ROOMS = [
  ['shared/', 'server/runtime/'],
  ['server/limits/', 'server/payments/', 'server/security/'],
  ['server/database/'],
  ['server/domain/'],
  ['server/api/'],
  ['server/call/'],
  ['server/http/', 'client/'],
  ['server/contract/'],
  ['server/web/', 'server/cli/'],
  ['server/package/'],
  ['server/boot/'],
];

/** Packages that only these rooms may import. */
const PACKAGES: { name: RegExp; rooms: string[] }[] = [
  {
    name: /^fastify$|^@fastify\//,
    rooms: ['server/http/', 'server/web/', 'server/boot/'],
  },
  { name: /^kysely$|^@mikro-orm\//, rooms: ['server/database/', 'server/domain/'] },
  { name: /^@modelcontextprotocol\//, rooms: ['server/http/mcpMessage.ts'] },
  { name: /^@opentelemetry\//, rooms: ['server/runtime/traceExport.ts'] },
  { name: /^vitest$|^fast-check$/, rooms: [] },
];

const STATIC_IMPORT = /^(?:import|export)\s+(?<type>type\s+)?(?:[^'"`;]*?\sfrom\s+)?['"](?<target>[^'"]+)['"]/gm;
const DYNAMIC_IMPORT = /\bimport\s*\(\s*['"](?<target>[^'"]+)['"]/g;

/** `of` is the importing file, `target` a path in the repository, or the name of a package. */
type Import = { of: string; target: string; isOurs: boolean; isType: boolean; isDynamic: boolean };

const paths = ['server', 'shared', 'client', 'tests'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
);
const sources = paths.filter((path) => path.endsWith('.ts') && !path.startsWith('tests/'));
const imports = sources.flatMap((path) => importsOf(path, readFileSync(join(ROOT, path), 'utf8')));

describe('imports', () => {
  it('go from a room to its own files and to rooms below', () => {
    expect(sources.filter((path) => levelOf(path) < 0)).toEqual([]);
    expect(upwardImports(imports)).toEqual([]);
  });

  it('form no circle', () => {
    expect(circlesIn(imports)).toEqual([]);
  });

  it('name packages only in the rooms that these are for', () => {
    const refused = imports.filter(({ of, target, isOurs }) =>
      PACKAGES.some(({ name, rooms }) => !isOurs && name.test(target) && !rooms.some((room) => of.startsWith(room))),
    );

    expect(refused.map(({ of, target }) => `${of} imports ${target}`)).toEqual([]);
  });

  it('of the client are types of the server', () => {
    const refused = imports.filter(
      ({ of, target, isType }) => of.startsWith('client/') && target.startsWith('server/') && !isType,
    );

    expect(refused.map(({ of, target }) => `${of} imports ${target}`)).toEqual([]);
  });

  it('of a start on the embedded database load no ORM, which only migrations need', () => {
    const start = ['server/boot/run.ts', 'server/boot/start.ts', 'server/boot/app.ts', EMBEDDED_DIALECT];

    expect(packagesAtStart(start).filter((name) => name.startsWith('@mikro-orm/'))).toEqual([]);
    expect(packagesAtStart(['server/database/options.ts'])).toContain('@mikro-orm/core');
  });

  it('of a start load no MCP, which is loaded with the first message of an assistant', () => {
    const isMcp = (name: string) => name.startsWith('@modelcontextprotocol/');

    expect(packagesAtStart(['server/boot/start.ts', 'server/boot/app.ts']).filter(isMcp)).toEqual([]);
    expect(packagesAtStart(['server/http/mcpMessage.ts']).filter(isMcp)).not.toEqual([]);
  });

  it('of the service lead to nothing of the sandbox, which only the command line and the test kit start', () => {
    const isSandbox = (path: string) => /sandbox|boot\/testing/i.test(path);

    expect(reachableFrom('server/boot/run.ts').filter(isSandbox)).toEqual([]);
    expect(reachableFrom('server/cli/main.ts').filter(isSandbox)).toContain('client/testing/sandbox/sandbox.ts');
  });

  it('upward, sideways, in a circle and in every form are found', () => {
    const found = [
      ...importsOf('server/domain/board/card.ts', `import type { Meta } from '../../api/trpc.ts';`),
      ...importsOf('server/limits/rateLimit.ts', `import {\n  Card,\n} from "../database/entities/card.ts";`),
      ...importsOf('shared/card.ts', `import './group.ts';\nexport type * from '../client/call.ts';`),
      ...importsOf('shared/group.ts', `export { Board } from './board.ts';`),
      ...importsOf('shared/board.ts', `  const page = import(\n    './card.ts'\n  );`),
    ];

    expect(upwardImports(found)).toEqual([
      'server/domain/board/card.ts imports server/api/trpc.ts',
      'server/limits/rateLimit.ts imports server/database/entities/card.ts',
      'shared/card.ts imports client/call.ts',
    ]);
    expect(found.map(({ isType }) => isType)).toEqual([true, false, false, true, false, false]);
    expect(circlesIn(found)).toEqual(['shared/card.ts → shared/group.ts → shared/board.ts → shared/card.ts']);
  });
});

describe('the picture of the rooms', () => {
  it('shows rooms that exist', () => {
    const picture = readFileSync(join(ROOT, 'docs/architecture.svg'), 'utf8');
    const titles = [...picture.matchAll(/class="title"[^>]*>([^<]+)</g)].flatMap(([, title]) => title!.split(' · '));
    const shown = titles.filter((title) => /^[a-z]/.test(title));
    const rooms = ROOMS.flat().map((room) => room.replace(/\/$/, ''));

    expect(shown.length).toBeGreaterThan(8);
    expect(shown.filter((title) => !rooms.includes(title) && !rooms.includes(`server/${title}`))).toEqual([]);
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

const EMBEDDED_DIALECT = 'server/database/embedded/embeddedDialect.ts';

/** The packages that these files load, by themselves and by what they import, before anything runs. */
function packagesAtStart(files: string[]): string[] {
  const loaded = imports.filter(({ isType, isDynamic }) => !isType && !isDynamic);
  const found = new Set(files);
  for (const file of found) {
    for (const { target } of loaded.filter(({ of }) => of === file)) found.add(target);
  }
  return [...found].filter((target) => !sources.includes(target));
}

/** The files that this one imports, by itself and by what it imports, at any time. */
function reachableFrom(file: string): string[] {
  const found = new Set([file]);
  for (const each of found) for (const { of, target } of imports) if (of === each) found.add(target);
  return [...found];
}

const roomOf = (path: string) => ROOMS.flat().find((room) => path.startsWith(room));

const levelOf = (path: string) => ROOMS.findIndex((rooms) => rooms.some((room) => path.startsWith(room)));

function upwardImports(found: Import[]): string[] {
  return found
    .filter(({ target, isOurs }) => isOurs && roomOf(target) !== undefined)
    .filter(({ of, target }) => roomOf(of) !== roomOf(target) && levelOf(target) >= levelOf(of))
    .map(({ of, target }) => `${of} imports ${target}`);
}

/** Each circle of files once, beginning with the file that comes first. */
function circlesIn(found: Import[]): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: string[]) => {
    if (way.includes(file)) return circles.push([...way.slice(way.indexOf(file)), file].join(' → '));
    if (done.has(file)) return;
    for (const { target } of found.filter(({ of, isOurs }) => isOurs && of === file)) visit(target, [...way, file]);
    done.add(file);
  };
  for (const { of } of found) visit(of, []);
  return circles;
}

function importsOf(of: string, source: string): Import[] {
  const read = (form: RegExp, isDynamic: boolean) =>
    [...source.matchAll(form)].map(({ groups }) => {
      const { type, target = '' } = groups!;
      const isOurs = target.startsWith('.');
      const path = isOurs ? joinPath(dirname(of), target) : target;
      return { of, target: path, isOurs, isType: type !== undefined, isDynamic };
    });
  return [...read(STATIC_IMPORT, false), ...read(DYNAMIC_IMPORT, true)];
}
