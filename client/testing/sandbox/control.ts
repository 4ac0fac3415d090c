import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { SandboxControl } from './description.ts';
import { SandboxMisuse } from './misuse.ts';

/** The paths of the sandbox itself: all others are the service's. */
const CONTROL = '/_sandbox';

type Control = SandboxControl & { setClock: (input: unknown) => void };
type Action = (control: Control, input: unknown) => unknown;

const ACTIONS: Record<string, Partial<Record<string, Action>>> = {
  [CONTROL]: { GET: () => undefined },
  [`${CONTROL}/reset`]: { POST: ({ reset }, input) => reset(input as never) },
  [`${CONTROL}/clock`]: { POST: ({ setClock }, input) => setClock(input) },
  [`${CONTROL}/faults`]: {
    POST: ({ addFault }, input) => addFault(input as never),
    DELETE: ({ clearFaults }) => clearFaults(),
  },
};

export const isControl = ({ url = '' }: IncomingMessage) => /^\/_sandbox(?:[/?]|$)/.test(url);

/** Executes a call, and answers with the sandbox's new description. */
export async function answerControl(control: Control, received: IncomingMessage, response: ServerResponse) {
  const { method = 'GET', url = '' } = received;
  const refuse = (status: number, message: string) => send(response, status, refusal(message));
  try {
    const [path = ''] = url.split(/\/?(?:\?|$)/, 1);
    const actions = ACTIONS[path];
    const action = actions?.[method === 'HEAD' ? 'GET' : method];
    const site = otherSite(received);
    if (site) return refuse(403, site);
    if (!actions) return refuse(404, `There is no ${url}. There are ${Object.keys(ACTIONS).join(', ')}.`);
    if (!action) {
      const methods = Object.keys(actions);
      response.setHeader('allow', methods.join(', '));
      return refuse(405, `${url} takes ${methods.join(' and ')}, not ${method}.`);
    }
    const body = await readBody(received);
    if (body === undefined) return refuse(413, `The body must have at most ${MOST_BYTES} bytes.`);
    await action(control, parse(body));
    send(response, 200, control.describe());
  } catch (error) {
    refuse(error instanceof SandboxMisuse || error instanceof RangeError ? 400 : 500, (error as Error).message);
  }
}

const MOST_BYTES = 65_536;

/** Undefined if it is too long; what follows is read, and dropped. */
const readBody = (received: IncomingMessage) =>
  new Promise<string | undefined>((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    received.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes <= MOST_BYTES) parts.push(part);
      else resolve(undefined);
    });
    received.on('end', () => resolve(Buffer.concat(parts).toString())).on('error', reject);
  });

/** Any web page can send a POST to this machine; its browser then names the page in `Origin`. */
function otherSite({ headers: { origin, host = '' } }: IncomingMessage): string | undefined {
  const [name] = host.split(/:\d+$/, 1);
  if (origin === undefined || (URL.canParse(origin) && new URL(origin).hostname === name)) return undefined;
  return `A web page of ${origin} can't control the sandbox. Call it from a program, or from a page of ${name}.`;
}

/** Why a call is refused. A web page can point a name of its own, which has a dot, to this machine, and then call the sandbox. */
export function hostProblem({ host }: IncomingHttpHeaders, ownHost: string): string | undefined {
  if (host === undefined) return undefined;
  const name = URL.parse(`http://${host}`)?.hostname ?? '';
  const isAddress = isIP(name.replace(/^\[|\]$/g, '')) !== 0;
  if (isAddress || OWN_NAMES.test(name) || name === ownHost.toLowerCase()) return undefined;
  return `The sandbox is not called ${name}. Call it by its IP address or as localhost, or start it with --host ${name}.`;
}

const OWN_NAMES = /^([^.]+|.+\.localhost|host\.docker\.internal)$/;

export function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify(body, null, 2)}\n`);
}

export const refusal = (message: string) => ({ error: true, message });

/** No body is an empty object. */
function parse(body: string): unknown {
  try {
    return JSON.parse(body || '{}');
  } catch {
    throw new SandboxMisuse('The body must be JSON, as in {}.');
  }
}
