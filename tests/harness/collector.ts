import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

type Value = { stringValue?: string; intValue?: number };
type SentSpan = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  traceState?: string;
  name: string;
  kind: number;
  attributes: { key: string; value: Value }[];
  status: { code?: number };
};

/** A span as a test reads it. */
export type CollectedSpan = Omit<SentSpan, 'attributes' | 'kind' | 'status'> & {
  kind: string | undefined;
  attributes: Record<string, unknown>;
  isError: boolean;
};

const KINDS = ['', 'internal', 'server', 'client'];
const byKey = (list: { key: string; value: Value }[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));

/** A collector of traces: OTLP as JSON over HTTP. */
export async function givenCollector(status = 200) {
  const received: { path: string | undefined; headers: IncomingHttpHeaders; body: any }[] = [];
  const server = createServer(async (request, response) => {
    const { url: path, headers } = request;
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
    received.push({ path, headers, body });
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    resource: () => byKey(received[0]!.body.resourceSpans[0].resource.attributes),
    spans: (): CollectedSpan[] =>
      received
        .flatMap(({ body }) => body.resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }: { spans: SentSpan[] }) => spans)
        .map(({ attributes, kind, status, ...span }) => ({
          ...span,
          kind: KINDS[kind],
          attributes: byKey(attributes),
          isError: status.code === 2,
        })),
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The spans below one, in the order of their ends. */
export const childrenOf = (spans: CollectedSpan[], parent: CollectedSpan) =>
  spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId);
