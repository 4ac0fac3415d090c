import { signal } from '@preact/signals';
import { explain } from '../service.ts';
import { Button } from './button.tsx';

type Message = { id: number; text: string; isFailure: boolean; action?: { label: string; run: () => unknown } };

const SHOWN_MILLISECONDS = 8000;

const messages = signal<Message[]>([]);
const aloud = signal('');
let latest = 0;

/** Says what happened; read aloud, too. With an action, such as Undo, it stays longer. */
export function say(text: string, action?: Message['action']): void {
  add({ text, isFailure: false, ...(action && { action }) });
}

/** Says it to people who hear the page: whoever sees it sees the change itself. */
export function sayAloud(text: string): void {
  messages.value = messages.peek().filter(({ isFailure }) => !isFailure);
  aloud.value = text;
}

/** Says why something failed; stays until it is closed, or something else is said. */
export function sayFailure(error: unknown, what = ''): void {
  add({ text: [what, explain(error)].filter(Boolean).join(' '), isFailure: true });
}

function add(message: Omit<Message, 'id'>): void {
  const id = ++latest;
  messages.value = [
    ...messages.peek().filter(({ isFailure }) => isFailure === message.isFailure),
    { id, ...message },
  ].slice(-3);
  if (!message.isFailure) setTimeout(() => close(id), SHOWN_MILLISECONDS * (message.action ? 2 : 1));
}

const close = (id: number) => {
  messages.value = messages.peek().filter((message) => message.id !== id);
};

/** Two regions, since a failure interrupts what is being read. */
export const Messages = () => (
  <div class="messages">
    <div role="status" id="message">
      {messages.value.filter(({ isFailure }) => !isFailure).map(MessageLine)}
    </div>
    <div role="status" class="unseen">
      {aloud}
    </div>
    <div role="alert" id="failure">
      {messages.value.filter(({ isFailure }) => isFailure).map(MessageLine)}
    </div>
  </div>
);

function MessageLine({ id, text, isFailure, action }: Message) {
  return (
    <p key={id} class={isFailure ? 'message failure' : 'message'}>
      <span>{text}</span>
      {action && (
        <Button
          as="link"
          onClick={() => {
            close(id);
            action.run();
          }}
        >
          {action.label}
        </Button>
      )}
      <Button as="icon" aria-label="Close this message" onClick={() => close(id)}>
        ×
      </Button>
    </p>
  );
}
