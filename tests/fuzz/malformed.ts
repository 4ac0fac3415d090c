import fc from 'fast-check';
import type { Draft, SocketRequest } from './request.ts';

/** Malformed and unusual HTTP, as bytes for a socket. */

const AUTHENTICATE = 'POST /api/v1/authenticate HTTP/1.1';
const HOST = 'Host: 127.0.0.1';
const message = (...lines: string[]) => Buffer.from(lines.join('\r\n'), 'latin1');

const refused = (kind: string, ...lines: string[]) => socketRequest(kind, message(...lines), 1, true);
const served = (kind: string, answers: number, ...lines: string[]) =>
  socketRequest(kind, message(...lines), answers, false);
const cut = (kind: string, ...lines: string[]) => socketRequest(kind, message(...lines), 0, false);

function socketRequest(kind: string, bytes: Buffer, answers: number, isRefused: boolean): SocketRequest {
  return { surface: 'socket', kind: `socket: ${kind}`, operations: [], bytes, answers, isRefused };
}

const LIST = 'POST /api/services/operations/v1/operations/boards/list HTTP/1.1';

const CASES: SocketRequest[] = [
  refused('unknown method', 'NONSENSE /api/v1/authenticate HTTP/1.1', HOST, '', ''),
  refused('lower-case method', 'post /api/v1/authenticate HTTP/1.1', HOST, '', ''),
  refused('two Content-Lengths', AUTHENTICATE, HOST, 'Content-Length: 2', 'Content-Length: 3', '', '{}'),
  refused('Content-Length not a number', AUTHENTICATE, HOST, 'Content-Length: x', '', '{}'),
  refused('negative Content-Length', AUTHENTICATE, HOST, 'Content-Length: -1', '', '{}'),
  refused('length and chunks', AUTHENTICATE, HOST, 'Content-Length: 2', 'Transfer-Encoding: chunked', '', '0', '', ''),
  refused('unknown transfer coding', AUTHENTICATE, HOST, 'Transfer-Encoding: nonsense', '', ''),
  refused('chunk size not a number', AUTHENTICATE, HOST, 'Transfer-Encoding: chunked', '', 'zz', '{}', '0', '', ''),
  refused('chunk longer than its size', AUTHENTICATE, HOST, 'Transfer-Encoding: chunked', '', '1', '{}', '0', '', ''),
  refused('chunk size too large', AUTHENTICATE, HOST, 'Transfer-Encoding: chunked', '', 'f'.repeat(40), '{}', '', ''),
  refused('headers too large', AUTHENTICATE, HOST, `X-Large: ${'x'.repeat(20_000)}`, '', ''),
  refused('path too large', `POST /api/${'x'.repeat(20_000)} HTTP/1.1`, HOST, '', ''),
  refused('CONNECT', 'CONNECT 127.0.0.1:80 HTTP/1.1', HOST, '', ''),
  refused('space in a header name', AUTHENTICATE, HOST, 'X Y: z', '', ''),
  refused('no header name', AUTHENTICATE, HOST, ': z', '', ''),
  refused('control character', AUTHENTICATE, HOST, 'X-Y: a\u0000b', '', ''),
  refused('line feed in a value', AUTHENTICATE, HOST, 'X-Y: a\rb', '', ''),
  refused('unknown version', 'POST /api/v1/authenticate HTTP/9.9', HOST, '', ''),
  refused('space in the path', 'POST /api/v1/authen ticate HTTP/1.1', HOST, '', ''),
  refused('garbage', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003', '', ''),
  refused('HTTP/2', 'PRI * HTTP/2.0', '', 'SM', '', ''),
  served('pipelined', 3, LIST, HOST, '', LIST, HOST, '', LIST, HOST, '', ''),
  served('absolute URL as path', 1, 'POST http://127.0.0.1/api/v1/authenticate HTTP/1.1', HOST, '', ''),
  served('chunks', 1, LIST, HOST, 'Transfer-Encoding: chunked', '', '1;x=y', '{', '1', '}', '0', 'X-T: z', '', ''),
  served('no Host', 1, AUTHENTICATE, 'Content-Length: 0', '', ''),
  served('no version', 1, 'POST /api/v1/authenticate', HOST, '', ''),
  served('HTTP/1.0', 1, 'POST /api/v1/authenticate HTTP/1.0', '', ''),
  served('bytes above 127', 1, LIST, HOST, 'X-Request-Id: \u00e9\u00ff', '', ''),
  cut('half a request line', 'POST /api/v1/auth'),
  cut('half of the headers', AUTHENTICATE, HOST, 'Content-'),
  cut('half a body', AUTHENTICATE, HOST, 'Content-Type: application/json', 'Content-Length: 1000', '', '{"email":'),
  cut('half a chunk', AUTHENTICATE, HOST, 'Transfer-Encoding: chunked', '', 'ff', '{"email":'),
  cut('nothing at all'),
];

export const malformed: fc.Arbitrary<Draft> = fc.constantFrom(...CASES).map((request) => () => request);
