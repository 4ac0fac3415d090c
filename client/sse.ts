/** A message of a stream of server-sent events. */
export type Message = { event: string; data: string; id: string | undefined };

/** Reads the messages of a response, also those without data, which only have an id. */
export async function* readMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let message: Message = { event: 'message', data: '', id: undefined };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          yield message;
          message = { event: 'message', data: '', id: undefined };
        }
        const [, name, text = ''] = /^(event|data|id):? ?(.*)$/.exec(line) ?? [];
        if (name === 'data') message.data += message.data && '\n';
        if (name) message = { ...message, [name]: name === 'data' ? message.data + text : text };
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
