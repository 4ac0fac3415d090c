import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { makeRandom } from './random.ts';

type Proxy = {
  url: string;
  /** Stops forwarding, without closing any connection. */
  silence: () => void;
  /** Forwards new connections again; the old ones stay silent. */
  restore: () => void;
  /** Refuses new connections; the old ones stay open. */
  refuse: () => void;
  /** Forwards new connections to another server. */
  leadTo: (serverUrl: string) => void;
  /** How many connections were opened. */
  opened: () => number;
  /** Closes all connections, and returns how many there were. */
  cut: () => number;
  close: () => void;
};

/** A proxy in front of a server that can go silent, like a lost network. */
export async function givenProxyTo(serverUrl: string): Promise<Proxy> {
  let target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let isSilent = false;
  let opened = 0;
  const server = createServer((near) => {
    opened++;
    sockets.add(near);
    near.on('error', () => undefined).on('close', () => sockets.delete(near));
    if (isSilent) return;
    const far = connect(Number(target.port || 5432), target.hostname);
    sockets.add(far);
    far.on('error', () => near.destroy()).on('close', () => sockets.delete(far));
    near.pipe(far).pipe(near);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = () => [...sockets].map((socket) => socket.destroy()).length;

  return {
    url: Object.assign(new URL(serverUrl), { hostname: '127.0.0.1', port }).href,
    silence: () => {
      isSilent = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    restore: () => {
      isSilent = false;
    },
    refuse: () => server.close(),
    leadTo: (other) => {
      target = new URL(other);
    },
    opened: () => opened,
    cut,
    close: () => {
      server.close();
      cut();
    },
  };
}

/** A proxy that cuts connections at random: before a request reaches the server, or in the middle of its answer. */
export async function givenCuttingProxyTo(serverUrl: string, { seed, share }: { seed: number; share: number }) {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  const random = makeRandom(seed).next;
  const cuts = { requests: 0, answers: 0 };
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    const cut = () => [near, far].map((socket) => socket.destroy());
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', cut).on('close', () => {
        sockets.delete(socket);
        cut();
      });
    }
    near.on('data', (bytes) => {
      if (cuts.requests > 0 && random() >= share / 4) return far.write(bytes);
      cuts.requests++;
      return cut();
    });
    far.on('data', (bytes) => {
      if (cuts.answers > 0 && random() >= share) return near.write(bytes);
      cuts.answers++;
      return near.write(bytes.subarray(0, Math.floor(random() * bytes.length)), cut);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    cuts,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
