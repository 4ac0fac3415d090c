import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type ProxiedAnswer = { status: number; headers: IncomingHttpHeaders; body: string };

/** Changes answers to a path, such as those with one status. */
export type Fault = {
  path: string;
  method?: string;
  /** Only answers with this status. */
  status?: number;
  /** Sends the request to another path. */
  leadsTo?: string;
  /** A header of the request that is lost on the way. */
  loses?: string;
  answer?: (answer: ProxiedAnswer) => Partial<ProxiedAnswer>;
};

/** A proxy in front of a service that plants faults. */
export async function givenFaultyProxy(serviceUrl: string, faults: Fault[]) {
  const server = createServer(async (received, response) => {
    const { method = 'GET', url = '/' } = received;
    const own = faults.filter((fault) => fault.path === url.split('?', 1)[0] && (fault.method ?? method) === method);
    const body = await text(received);
    const headers = { ...received.headers };
    for (const { loses } of own) if (loses) delete headers[loses];
    const path = own.find(({ leadsTo }) => leadsTo)?.leadsTo ?? url;
    let answer = await forward(serviceUrl + path, method, headers, body);
    for (const { status, answer: change } of own) {
      if (change && (status ?? answer.status) === answer.status) answer = { ...answer, ...change(answer) };
    }
    const { 'content-length': _, 'transfer-encoding': __, 'content-encoding': ___, ...others } = answer.headers;
    response.writeHead(answer.status, others as Record<string, string>).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

const forward = (address: string, method: string, headers: IncomingHttpHeaders, body: string) =>
  new Promise<ProxiedAnswer>((resolve, reject) => {
    // Compressed answers could not be changed.
    const call = request(
      address,
      { method, headers: { ...headers, 'accept-encoding': 'identity' } },
      async (response) =>
        resolve({ status: response.statusCode!, headers: response.headers, body: await text(response) }),
    );
    call.on('error', reject).end(body);
  });
