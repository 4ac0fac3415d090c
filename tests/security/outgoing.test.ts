import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeAddressFinder } from '../../server/security/hostAddresses.ts';
import { addressProblem, makeOutgoing } from '../../server/security/outgoing.ts';
import { givenNameserver, givenSilentNameserver } from '../harness/nameserver.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outgoing-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Finds addresses with this nameserver, and with files that have these lines. */
async function givenFinder(nameserver: { address: string; close: () => void }, { hosts = '', resolver = '' } = {}) {
  endings.push(nameserver.close);
  const [hostsFile, resolverFile] = [
    join(folder, `hosts-${endings.length}`),
    join(folder, `resolver-${endings.length}`),
  ];
  await writeFile(hostsFile, hosts);
  await writeFile(resolverFile, resolver);
  const find = makeAddressFinder({ nameservers: [nameserver.address], hostsFile, resolverFile });
  return { find, hostsFile };
}

const ALONE = { isInternal: false, signal: new AbortController().signal };
const INTERNAL = { ...ALONE, isInternal: true };

describe('the addresses of a host', () => {
  it('are those of both families', async () => {
    const nameserver = await givenNameserver({ 'hook.test': { a: ['8.8.8.8', '8.8.4.4'], aaaa: ['2606:4700::1111'] } });
    const { find } = await givenFinder(nameserver);

    expect(await find('hook.test', ALONE)).toEqual(['8.8.8.8', '8.8.4.4', '2606:4700::1111']);
  });

  it('are in the hosts file, also after it has changed', async () => {
    const nameserver = await givenNameserver({});
    const hosts = '10.0.0.1 crm.internal CRM # the old one\n::1 crm\n';
    const { find, hostsFile } = await givenFinder(nameserver, { hosts });

    expect(await find('crm.internal', INTERNAL)).toEqual(['10.0.0.1']);
    expect(await find('crm', INTERNAL)).toEqual(['10.0.0.1', '::1']);
    await writeFile(hostsFile, '10.0.0.2 crm.internal');
    expect(await find('crm.internal', INTERNAL)).toEqual(['10.0.0.2']);
    expect(nameserver.asked).toEqual([]);
  });

  it('of localhost are known without a nameserver', async () => {
    const { find } = await givenFinder(await givenSilentNameserver());

    expect(await find('localhost', ALONE)).toEqual(['127.0.0.1', '::1']);
  });

  it('are looked for in the search domains, for allowed hosts alone', async () => {
    const nameserver = await givenNameserver({ 'crm.apps.internal': { a: ['10.0.0.1'] } });
    const { find } = await givenFinder(nameserver, { resolver: 'search other.internal apps.internal\n' });

    expect(await find('crm', INTERNAL)).toEqual(['10.0.0.1']);
    expect(new Set(nameserver.asked)).toEqual(new Set(['crm.other.internal', 'crm.apps.internal']));
    await expect(find('crm', ALONE)).rejects.toThrow('The host name was not found.');
    await expect(find('crm.', INTERNAL)).rejects.toThrow('The host name was not found.');
  });

  it('of a name with enough dots are asked for as it is first', async () => {
    const nameserver = await givenNameserver({
      'crm.apps': { a: ['10.0.0.1'] },
      'crm.apps.internal': { a: ['10.0.0.2'] },
    });
    const one = await givenFinder(nameserver, { resolver: 'search internal\n' });
    const other = await givenFinder(
      { ...nameserver, close: () => undefined },
      { resolver: 'search internal\noptions ndots:2\n' },
    );

    expect([await one.find('crm.apps', INTERNAL), await other.find('crm.apps', INTERNAL)]).toEqual([
      ['10.0.0.1'],
      ['10.0.0.2'],
    ]);
  });
});

describe('an allowed host', () => {
  it('is called on its port, on 443 without one, and on all with *', () => {
    const problems = (host: string) =>
      [80, 443, 8080].map((port) => addressProblem(`http://crm.test:${port}/`, [host]) === undefined);

    expect(problems('crm.test:8080')).toEqual([false, false, true]);
    expect(problems('crm.test')).toEqual([false, true, false]);
    expect(problems('crm.test:*')).toEqual([true, true, true]);
    expect(problems('other.test:*')).toEqual([false, false, false]);
  });
});

describe('a nameserver that never answers', () => {
  it('takes no thread that connections to the database need', async () => {
    const nameserver = await givenSilentNameserver();
    const { find } = await givenFinder(nameserver);
    const outgoing = makeOutgoing({ allowedHosts: [], findAddresses: find });
    endings.push(outgoing.close);
    const stop = new AbortController();
    const posts = Array.from({ length: 20 }, (_, n) =>
      outgoing.post(`https://silent${n}.test/`, {}, '{}', stop.signal),
    );

    await expect.poll(() => new Set(nameserver.asked).size).toBe(20);

    expect(process.getActiveResourcesInfo()).not.toContain('GetAddrInfoReqWrap');
    // Connections of the database find their hosts like this.
    expect(await lookup('localhost')).toHaveProperty('address');
    stop.abort();

    const outcomes = await Promise.all(posts);
    expect(outcomes.map(({ status }) => status)).toEqual(Array(20).fill(undefined));
  });

  it('is given up before the call is', async () => {
    const { find } = await givenFinder(await givenSilentNameserver());
    const outgoing = makeOutgoing({ allowedHosts: [], findAddresses: find });
    endings.push(outgoing.close);

    const { error } = await outgoing.post('https://silent.test/', {}, '{}');

    expect(error).toBe('The nameservers of the host did not answer.');
  });
});

/** A receiver that counts its connections. */
async function givenReceiver(answer: Parameters<typeof createServer>[1]) {
  const server = createServer(answer);
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return { port: await listening(server), sockets, connections: () => connections };
}

async function listening(server: Server & { closeAllConnections?: () => void }) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const toLoopback = async () => ['127.0.0.1'];

describe('a call', () => {
  it('keeps the name of the host in its headers', async () => {
    const hosts: (string | undefined)[] = [];
    const { port } = await givenReceiver((request, response) => {
      hosts.push(request.headers.host);
      response.writeHead(204).end();
    });
    const outgoing = makeOutgoing({ allowedHosts: [`crm.test:${port}`], findAddresses: toLoopback });
    endings.push(outgoing.close);

    await outgoing.post(`http://crm.test:${port}/`, {}, '{}');

    expect(hosts).toEqual([`crm.test:${port}`]);
  });

  it('keeps the name of the host for TLS', async () => {
    const names: string[] = [];
    const server = createTlsServer({
      SNICallback: (name, done) => {
        names.push(name);
        done(new Error('no certificate'));
      },
    });
    server.on('tlsClientError', () => undefined);
    const port = await listening(server);
    const outgoing = makeOutgoing({ allowedHosts: [`crm.test:${port}`], findAddresses: toLoopback });
    endings.push(outgoing.close);

    await outgoing.post(`https://crm.test:${port}/`, {}, '{}');

    expect(names).toEqual(['crm.test']);
  });

  it('has ended its endless answer before the next one', async () => {
    const { port, sockets, connections } = await givenReceiver((_, response) => {
      const more = setInterval(() => response.write('.'), 20);
      response.on('close', () => clearInterval(more));
      response.writeHead(200).write('.');
    });
    const outgoing = makeOutgoing({ allowedHosts: [`127.0.0.1:${port}`] });
    endings.push(outgoing.close);

    for (let call = 0; call < 2; call++) {
      const outcome = await outgoing.post(`http://127.0.0.1:${port}/`, {}, '{}');
      expect(outcome).toMatchObject({ status: 200, error: undefined });
      await expect.poll(() => sockets.size).toBe(0);
    }
    expect(connections()).toBe(2);
  });

  it('ends with too many interim answers, which would keep the node busy', async () => {
    const flooded = new Set<Socket>();
    const server = createTcpServer((socket) => {
      flooded.add(socket);
      socket.on('error', () => undefined).on('close', () => flooded.delete(socket));
      const flood = () => {
        while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)));
      };
      socket.once('data', flood).on('drain', flood);
    });
    const port = await listening(server);
    const outgoing = makeOutgoing({ allowedHosts: [`127.0.0.1:${port}`] });
    endings.push(outgoing.close);

    const outcome = await outgoing.post(`http://127.0.0.1:${port}/`, {}, '{}');

    expect(outcome).toMatchObject({ status: undefined, error: 'The connection failed.' });
    await expect.poll(() => flooded.size).toBe(0);
  });

  it('uses the connection of the one before', async () => {
    const { port, connections } = await givenReceiver((_, response) => response.writeHead(200).end('fine'));
    const outgoing = makeOutgoing({ allowedHosts: [`127.0.0.1:${port}`] });
    endings.push(outgoing.close);

    for (let call = 0; call < 5; call++) await outgoing.post(`http://127.0.0.1:${port}/`, {}, '{}');

    expect(connections()).toBe(1);
  });

  it('reads at most 4 KiB of an answer: a longer one ends the connection, and counts by its status', async () => {
    const { port, connections } = await givenReceiver(({ url }, response) =>
      response.writeHead(200).end('x'.repeat(Number(url?.slice(1)))),
    );
    const outgoing = makeOutgoing({ allowedHosts: [`127.0.0.1:${port}`] });
    endings.push(outgoing.close);
    const post = (bytes: number) => outgoing.post(`http://127.0.0.1:${port}/${bytes}`, {}, '{}');

    for (const bytes of [4096, 4096, 4097, 4097])
      expect(await post(bytes)).toMatchObject({ status: 200, error: undefined });

    expect(connections()).toBe(2);
  });

  it('waits for a free connection if a host has 100 already', async () => {
    const waiting: (() => void)[] = [];
    const { port, connections } = await givenReceiver((_, response) =>
      waiting.push(() => response.writeHead(204).end()),
    );
    const outgoing = makeOutgoing({ allowedHosts: [`127.0.0.1:${port}`] });
    endings.push(outgoing.close);

    const posts = Array.from({ length: 110 }, () => outgoing.post(`http://127.0.0.1:${port}/`, {}, '{}'));
    await expect.poll(() => waiting.length).toBe(100);
    expect(connections()).toBe(100);
    for (const answer of waiting.splice(0)) answer();
    await expect.poll(() => waiting.length).toBe(10);
    for (const answer of waiting) answer();

    expect((await Promise.all(posts)).every(({ status }) => status === 204)).toBe(true);
  });
});

describe('an allowed host without a port', () => {
  it('may be called at 443 alone', async () => {
    const closed = createTcpServer();
    const port = await listening(closed);
    const asked: string[] = [];
    const findAddresses = async (name: string) => {
      asked.push(name);
      return ['127.0.0.1'];
    };
    const outgoing = makeOutgoing({ allowedHosts: ['crm.test', '[::1]'], findAddresses });
    endings.push(outgoing.close);
    const errors = [];

    for (const url of [`https://crm.test:${port}/`, 'http://crm.test/', `https://[::1]:${port}/`])
      errors.push((await outgoing.post(url, {}, '{}')).error);
    const allowed = await outgoing.post('https://crm.test/', {}, '{}');

    expect(errors).toEqual([
      'The address must be on the internet.',
      'The address must start with https://.',
      'The address must be on the internet.',
    ]);
    expect(allowed.error).not.toBe('The address must be on the internet.');
    expect(asked).toEqual(['crm.test', 'crm.test']);
  });
});
