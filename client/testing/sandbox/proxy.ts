import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { laterVersion, tooManyRequests, unavailable, withUnknownFields } from './answers.ts';
import { refusal, send } from './control.ts';
import type { Call } from './description.ts';
import type { Faults } from './faults.ts';

/** Passes calls on to the service, with the faults that were asked for. `note` is told of each call that has ended. */
export function makeProxy(serviceUrl: () => Promise<string>, faults: Faults, note: (call: Call) => void) {
  let agent = new Agent({ keepAlive: true });
  let running = new AbortController();

  async function pass(received: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = received;
    const found = faults.takeForCall(method, url);
    const { fault, seconds = 0 } = found ?? {};
    const end = (status: number | undefined) => note({ method, path: url, status, fault });
    if (fault === 'too_many_requests' || fault === 'unavailable') {
      const { status, headers, body } = fault === 'unavailable' ? unavailable(seconds) : tooManyRequests(url, seconds);
      // A body that is not read would stay in the connection.
      received.resume();
      response.writeHead(status, headers).end(body);
      return end(status);
    }

    const target = await serviceUrl();
    const { signal } = running;
    const ended = new Error('a reset ended this call. Wait for the answer of the reset before you call.');
    const whileRunning = <Result>(work: Promise<Result>) =>
      work.catch((error) => {
        throw signal.aborted ? ended : error;
      });
    const isNewer = faults.isNewerVersion();
    const answer = await whileRunning(forward(received, response, target, isNewer));
    const { statusCode = 502 } = answer;
    end(fault === 'lost_answer' ? undefined : statusCode);
    const headers = headersOf(answer, isNewer);
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream');
    // A stream has no end to wait for.
    const bytes = isStream || (!found && !isNewer) ? undefined : await whileRunning(buffer(answer));
    if (fault === 'lost_answer') return void received.socket.destroy();
    if (fault === 'late_answer') await whileRunning(pause(seconds * 1000, undefined, { signal }));
    if (!bytes) {
      response.writeHead(statusCode, headers);
      response.flushHeaders();
      // After the data is written.
      if (fault === 'cut_answer') answer.once('data', () => setImmediate(() => received.socket.destroy()));
      return pipeline(answer, response);
    }

    const isJson = answer.headers['content-type']?.startsWith('application/json');
    const body = isNewer && isJson ? Buffer.from(withUnknownFields(bytes.toString())) : bytes;
    // An answer to HEAD has the length of a body that it leaves out.
    const length = method !== 'HEAD' && { 'content-length': body.length };
    response.writeHead(statusCode, { ...headers, ...length });
    if (fault !== 'cut_answer') return void response.end(body);
    response.write(body.subarray(0, body.length / 2), () => received.socket.destroy());
  }

  const forward = (received: IncomingMessage, response: ServerResponse, target: string, isNewer: boolean) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const { method, url, headers } = received;
      const { connection: _, ...others } = headers;
      // A compressed answer could not be changed.
      const sent = isNewer ? { ...others, 'accept-encoding': 'identity' } : others;
      // Not joined, since a path such as `*@other.test` would make the target another host.
      const call = request(target, { agent, method, headers: sent, path: url }, resolve);
      call.on('error', reject);
      response.once('close', () => call.destroy());
      received.pipe(call);
    });

  return {
    /** Answers 502 if the service can't be reached; a caller whose answer has begun loses the connection. */
    pass: (received: IncomingMessage, response: ServerResponse): void => {
      pass(received, response).catch((error: Error) => {
        if (response.headersSent) return response.destroy();
        send(response, 502, refusal(`The sandbox has no answer: ${error.message}`));
      });
    },
    /** Ends all calls, streams and late answers included. */
    cut: () => {
      running.abort();
      running = new AbortController();
      agent.destroy();
      agent = new Agent({ keepAlive: true });
    },
  };
}

/** Hop-by-hop headers belong to one connection, and are not passed on. */
function headersOf({ headers }: IncomingMessage, isNewer: boolean): OutgoingHttpHeaders {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...kept } = headers;
  const version = kept['x-deckhand-version'];
  return isNewer && typeof version === 'string' ? { ...kept, 'x-deckhand-version': laterVersion(version) } : kept;
}
