import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { newId } from '../../../../client/idempotencyKey.ts';
import { draftOf } from '../draft.ts';
import { TextButton } from '../parts/button.tsx';

/** Sent, and not known to be saved. With its key, it is made once, however often it is sent. */
type Unsaved = { title: string; key: string };
type Draft = { text: string; unsaved: Unsaved[] };
const NOTHING: Draft = { text: '', unsaved: [] };

/** The keys of what this page has sent, and has no answer to. */
const underWay = signal<ReadonlySet<string>>(new Set());
const isUnderWay = ({ key }: Unsaved) => underWay.value.has(key);

type QuickAddProps = {
  /** The name of its draft. */
  draft: string;
  label: string;
  placeholder: string;
  action: string;
  /** Resolves to the error if it was not saved. */
  send: (title: string, idempotencyKey: string) => Promise<unknown>;
};

/** A field for one title after another: empty as soon as one is sent. What fails comes back into it, or stands below it. */
export function QuickAdd({ draft: name, label, placeholder, action, send }: QuickAddProps) {
  const [draft, keepDraft] = draftOf<Draft>(name);
  const { text, unsaved } = draft.value ?? NOTHING;
  const lost = unsaved.filter((one) => !isUnderWay(one) && one.title !== text);

  const change = (make: (draft: Draft) => Partial<Draft>) => {
    const before = draft.peek() ?? NOTHING;
    const now = { ...before, ...make(before) };
    keepDraft(now.text || now.unsaved.length > 0 ? now : undefined);
  };
  const giveBack = ({ title }: Unsaved) => change(({ text }) => ({ text: text || title }));
  const drop = ({ key }: Unsaved) => change(({ unsaved }) => ({ unsaved: unsaved.filter((one) => one.key !== key) }));
  const type = (typed: string) =>
    // What came back and is changed is another title.
    change(({ unsaved }) => ({ text: typed, unsaved: unsaved.filter((one) => isUnderWay(one) || one.title !== text) }));
  const add = async (one: Unsaved) => {
    underWay.value = new Set([...underWay.peek(), one.key]);
    const error = await send(one.title, one.key);
    underWay.value = new Set([...underWay.peek()].filter((key) => key !== one.key));
    if (error) giveBack(one);
    else drop(one);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const typed = draft.peek() ?? NOTHING;
    const title = typed.text.trim();
    if (title === '') return;
    const again = typed.unsaved.find((one) => one.title === title && !isUnderWay(one));
    const one = again ?? { title, key: newId() };
    keepDraft({ text: '', unsaved: again ? typed.unsaved : [...typed.unsaved, one] });
    add(one);
  };
  useLayoutEffect(() => {
    // Sent before the page was loaded again.
    if (lost[0]) giveBack(lost[0]);
  }, []);

  return (
    <form class="add" onSubmit={submit}>
      <input
        class="input"
        aria-label={label}
        placeholder={placeholder}
        maxLength={255}
        autocomplete="off"
        dir="auto"
        value={text}
        onInput={({ currentTarget }) => type(currentTarget.value)}
      />
      <button type="submit" class="button quiet">
        {action}
      </button>
      {lost.map((one) => (
        <p key={one.key} class="failure" role="alert">
          “{one.title}” is not added. <TextButton text="Add it" of={one.title} onClick={() => add(one)} />
          <TextButton text="Drop it" of={one.title} onClick={() => drop(one)} />
        </p>
      ))}
    </form>
  );
}
