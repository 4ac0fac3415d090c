import fc from 'fast-check';
import { restProcedures } from '../../server/api/procedures.ts';
import type { FuzzRequest } from './request.ts';

const METHODS = ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'POST'];

const ODD_SEGMENTS = [
  ...['', '/', '//', '.', '..', '/../../etc/passwd', '%2e%2e%2f%2e%2e%2f', '%', '%zz', '%00', '%E0%A4%A'],
  ...['%ff', '%c0%ae', ';x=1', ',', "'", '?', '?__proto__=1', '?tool_key=%', '?tool_key=%25%27'],
  ...['?tool_key=%00', '?tool_key[]=1&tool_key[]=2', '?tool_key=a&tool_key=b', '?batch=1', '?input=%7B'],
  ...['?input=%7B%22json%22%3A1%7D&batch=1', `?x=${'y'.repeat(8000)}`, `/${'x'.repeat(6000)}`],
  ...['/a'.repeat(1500), ',a'.repeat(2000), '__proto__', '/__proto__', '/constructor', '.constructor'],
  ...['.prototype.x'],
];

const OTHER_PATHS = [
  ...['/', '//', '/docs', '/docs/', '/openapi.json', '/health/live', '/health/ready', '/health', '/metrics', '/.env'],
  ...['/pages//etc/passwd', '/pages/../../etc/passwd', '/pages/%2e%2e/%2e%2e/package.json', '/pages/', '/pages/x'],
  ...['/checkout', '/checkout/', '/checkout/x', '/checkout/%00', '/checkout/1', '/webhooks', '/webhooks/stripe'],
  ...['/apix', '/trpcx', '/API/v1/authenticate', '/api%2fv1', '/favicon.ico', '/robots.txt', '/__proto__', '/%'],
];
const API_PATHS = ['/api', '/api/', '/api//', '/api/v1', '/api/v1/authenticate/x', '/api/__proto__', '/api/services'];
const RPC_PATHS = [
  ...['/trpc', '/trpc/', '/trpc//', '/trpc//boards.list', '/trpc/__proto__', '/trpc/constructor', '/trpc/toString'],
  ...['/trpc/boards', '/trpc/boards.', '/trpc/.list', '/trpc/boards.list,', '/trpc/,boards.list', '/trpc/boards..list'],
  ...['/trpc/boards%2Elist', '/trpc/boards.list%2Cboards.list?batch=1', '/trpc/_def', '/trpc/boards._def.record'],
];

export type PathVariant = { method: string; path: string | null; suffix: string | null };

/** Another method, another path, or a suffix. */
export const pathVariant: fc.Arbitrary<PathVariant> = fc.record({
  method: fc.oneof(fc.constant('POST'), fc.constantFrom(...METHODS)),
  path: fc.option(fc.constantFrom(...OTHER_PATHS, ...API_PATHS, ...RPC_PATHS)),
  suffix: fc.option(fc.constantFrom(...ODD_SEGMENTS)),
});

export function withPathVariant(request: FuzzRequest, { method, path, suffix }: PathVariant): FuzzRequest {
  const changedPath = `${path ?? request.path}${suffix ?? ''}`;
  const hasBody = !/^(GET|HEAD|OPTIONS|TRACE)$/.test(method);
  return {
    ...request,
    surface: surfaceOf(changedPath),
    kind: method === 'POST' ? 'path' : 'method',
    operations: operationsAt(changedPath),
    method,
    path: changedPath,
    body: hasBody ? request.body : undefined,
  };
}

function surfaceOf(path: string): FuzzRequest['surface'] {
  if (/^\/api(?=$|[/?])/.test(path)) return 'rest';
  return /^\/trpc(?=$|[/?])/.test(path) ? 'rpc' : 'other';
}

function operationsAt(path: string): string[] {
  const [pathname] = path.split('?', 1) as [string];
  if (pathname.startsWith('/trpc/')) return decoded(pathname.slice('/trpc/'.length)).split(',');
  return restProcedures.filter(({ rest }) => `/api${rest.path}` === pathname).map(({ name }) => name);
}

export function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
