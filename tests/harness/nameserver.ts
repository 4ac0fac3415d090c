import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const A = 1;
const AAAA = 28;

export type Nameserver = { address: string; asked: string[]; close: () => void };

/** A nameserver on this machine. It knows these IPv4 and IPv6 addresses by name, and says that any other name does not exist. */
export const givenNameserver = (known: Record<string, { a?: string[]; aaaa?: string[] }>) =>
  listen((query) => answerTo(query, known));

/** A nameserver that never answers. */
export const givenSilentNameserver = () => listen(() => undefined);

async function listen(answer: (query: Query) => Buffer | undefined): Promise<Nameserver> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (message, { port, address }) => {
    const query = readQuery(message);
    asked.push(query.name);
    const reply = answer(query);
    if (reply) socket.send(reply, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, asked, close: () => socket.close() };
}

type Query = { id: number; name: string; type: number; question: Buffer };

function readQuery(message: Buffer): Query {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  const end = at + 5;
  return {
    id: message.readUInt16BE(0),
    name: labels.join('.').toLowerCase(),
    type: message.readUInt16BE(at + 1),
    question: message.subarray(12, end),
  };
}

function answerTo({ id, name, type, question }: Query, known: Parameters<typeof givenNameserver>[0]): Buffer {
  const host = known[name];
  const found = (type === A ? host?.a : type === AAAA ? host?.aaaa : undefined) ?? [];
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  // A response, recursion desired and available; 3 is "no such name".
  header.writeUInt16BE(0x8180 | (host ? 0 : 3), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(found.length, 6);
  return Buffer.concat([header, question, ...found.map((address) => recordOf(type, address))]);
}

/** The name is a pointer to that of the question. */
function recordOf(type: number, address: string): Buffer {
  const data = type === A ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
  const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 1, 0, data.length]);
  return Buffer.concat([record, data]);
}

function ipv6Bytes(address: string): Buffer {
  const [head = '', tail = ''] = address.split('::').map((part) => part.split(':').filter(Boolean)) as [
    string[],
    string[],
  ];
  const parts = [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
  const bytes = Buffer.alloc(16);
  for (const [at, part] of parts.entries()) bytes.writeUInt16BE(Number.parseInt(part, 16), at * 2);
  return bytes;
}
