import { readMessages } from '../../client/sse.ts';

type Listener = (event: any) => void;

/** An `EventSource` with headers, as packages provide it for `httpSubscriptionLink`: Node has none. It reconnects at once. */
export function eventSourceWith(headers: Record<string, string>) {
  return class TestEventSource {
    readonly CLOSED = 2;
    readyState = 0;
    readonly #listeners = new Map<string, Listener[]>();
    readonly #closing = new AbortController();
    #lastEventId = '';

    constructor(url: string | URL) {
      void this.#connect(String(url));
    }

    addEventListener(type: string, listener: Listener) {
      this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
    }

    removeEventListener() {}

    close() {
      this.readyState = this.CLOSED;
      this.#closing.abort();
    }

    async #connect(url: string) {
      while (!this.#closing.signal.aborted) {
        const sent = { accept: 'text/event-stream', 'last-event-id': this.#lastEventId, ...headers };
        const response = await fetch(url, { headers: sent, signal: this.#closing.signal }).catch(() => undefined);
        if (response && response.status !== 200) this.readyState = this.CLOSED;
        else if (response) await this.#read(response).catch(() => undefined);
        if (!this.#closing.signal.aborted) this.#tell('error', {});
        if (this.readyState === this.CLOSED) return;
      }
    }

    async #read(response: Response) {
      this.readyState = 1;
      for await (const { event, data, id } of readMessages(response.body!)) {
        if (id !== undefined) this.#lastEventId = id;
        if (data !== '' || event !== 'message') this.#tell(event, { data, lastEventId: this.#lastEventId });
      }
      this.readyState = 0;
    }

    #tell(type: string, event: object) {
      for (const listener of this.#listeners.get(type) ?? []) listener(event);
    }
  };
}
