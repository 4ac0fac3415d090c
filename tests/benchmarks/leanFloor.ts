import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AUTHENTICATE, inputOf, OPERATIONS, openBaseline, Refusal } from './baseline.ts';

/** The lowest baseline of the benchmark: the same answers to the same calls, written by hand with only `node:http` and `pg`. */
export async function startLeanFloor(databaseUrl: string, secret: string) {
  const { perform, findCaller, authenticate, end } = openBaseline(databaseUrl, secret, 'lean-floor');
  const server = createServer(async (request, response) => {
    let status: number;
    let text: string;
    try {
      [status, text] = request.url === AUTHENTICATE ? await signIn(request) : await call(request);
    } catch (error) {
      status = error instanceof Refusal ? error.statusCode : 500;
      text = JSON.stringify({ error: true, message: (error as Error).message, data: [] });
    }
    response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
    });
    response.end(text);
  });
  server.keepAliveTimeout = 72_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await end();
    },
  };

  async function call(request: IncomingMessage): Promise<[number, string]> {
    const operation = OPERATIONS[request.url!];
    if (!operation || request.method !== 'POST') throw new Refusal(404, 'There is no such path.');
    const body = readBody(request);
    const caller = await findCaller(request.headers, operation.roles);
    const data = await perform(operation, caller, parse(await body));
    return [operation.status, JSON.stringify({ error: false, message: operation.message, data })];
  }

  async function signIn(request: IncomingMessage): Promise<[number, string]> {
    return [200, JSON.stringify(await authenticate(parse(await readBody(request))))];
  }
}

const parse = (text: string) => inputOf(text === '' ? {} : JSON.parse(text));

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (part: string) => {
      text += part;
      if (text.length > LARGEST_BODY) reject(new Refusal(400, 'The body is too large.'));
    });
    request.on('end', () => resolve(text));
    request.on('error', reject);
  });
}
const LARGEST_BODY = 1024 * 1024;

if (process.argv[1] === import.meta.filename) {
  const { url } = await startLeanFloor(process.env.DATABASE_URL!, process.env.JWT_SECRET!);
  console.log(`The lean floor listens on ${url}`);
}
