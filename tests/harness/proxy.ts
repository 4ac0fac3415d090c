import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

type Proxy = {
  url: string;
  /** Stops forwarding, without closing any connection. */
  silence: () => void;
  /** Forwards new connections again; the old ones stay silent. */
  restore: () => void;
  close: () => void;
};

/** A proxy in front of a server that can go silent, like a lost network. */
export async function givenProxyTo(serverUrl: string): Promise<Proxy> {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let isSilent = false;
  const server = createServer((near) => {
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

  return {
    url: Object.assign(new URL(serverUrl), { hostname: '127.0.0.1', port }).href,
    silence: () => {
      isSilent = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    restore: () => {
      isSilent = false;
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
