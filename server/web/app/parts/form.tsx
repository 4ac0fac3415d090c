import { useSignal } from '@preact/signals';
import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes, TargetedSubmitEvent } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import type { DeckhandError } from '../../../../client/client.ts';
import { draftOf } from '../draft.ts';
import { explain } from '../service.ts';
import { Hint } from './button.tsx';

type FormProps = {
  /** What the button says. */
  action: string;
  /** Gets the values by name; what it throws is shown, and the form keeps what was typed. */
  onSubmit: (values: Record<string, string>, form: HTMLFormElement) => Promise<unknown>;
  children?: ComponentChildren;
  onCancel?: (() => void) | undefined;
  /** A name for what is typed: it is kept until it is sent or cancelled. Without it, nothing is. */
  draft?: string;
  isDestructive?: boolean;
  class?: string;
};

/** A form that sends once, shows that it waits, and says why it failed. */
export function Form({ action, onSubmit, children, onCancel, draft: draftName = '', ...looks }: FormProps) {
  const { isDestructive, class: name } = looks;
  const isBusy = useSignal(false);
  const failure = useSignal('');
  const place = useRef<HTMLFormElement>(null);
  const [draft, keepDraft] = draftOf<Record<string, string>>(`form.${draftName}`);
  const isRestored = useSignal(draft.peek() !== undefined);
  useLayoutEffect(() => {
    for (const field of typedFields(place.current)) field.value = draft.peek()?.[field.name] ?? field.value;
  }, []);
  const type = () => {
    const typed = typedFields(place.current).filter(({ value, defaultValue }) => value !== defaultValue);
    keepDraft(typed.length > 0 ? Object.fromEntries(typed.map(({ name, value }) => [name, value])) : undefined);
  };
  const cancel = () => {
    keepDraft(undefined);
    onCancel?.();
  };
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (isBusy.peek()) return;
    isBusy.value = true;
    failure.value = '';
    try {
      await onSubmit(Object.fromEntries(new FormData(form)) as Record<string, string>, form);
      keepDraft(undefined);
    } catch (error) {
      failure.value = explain(error);
      const [field] = Object.keys((error as DeckhandError).fields ?? {});
      (form.elements.namedItem(field ?? '') as HTMLElement | null)?.focus?.();
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form class={name} onSubmit={submit} onInput={draftName ? type : undefined} ref={place} aria-busy={isBusy}>
      {isRestored.value && <Hint>Unsaved draft: Cancel drops it.</Hint>}
      {children}
      <p class="failure" role="alert">
        {failure}
      </p>
      <div class="choices">
        <button type="submit" class={isDestructive ? 'button destructive' : 'button'} disabled={isBusy}>
          {action}
        </button>
        {onCancel && (
          <button type="button" class="button quiet" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

/** Neither passwords and codes nor addresses, which may have secrets. */
function typedFields(form: HTMLFormElement | null): (HTMLInputElement | HTMLTextAreaElement)[] {
  const KEPT = 'textarea, input:is([type=text], [type=email], [type=number], [type=date], :not([type]))';
  const fields = form?.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(KEPT) ?? [];
  return [...fields].filter(({ name, autocomplete }) => name && autocomplete !== 'one-time-code');
}

type FieldProps = InputHTMLAttributes<HTMLInputElement> & { label: string; hint?: string | undefined };

/** A labelled field; a checkbox has its label behind it. */
export function Field({ label, hint, ...input }: FieldProps) {
  const id = useId();
  const isCheckbox = input.type === 'checkbox';
  return (
    <div class={isCheckbox ? 'field check' : 'field'}>
      <label for={id}>{label}</label>
      <input id={id} class={isCheckbox ? undefined : 'input'} aria-describedby={hint && `${id}-hint`} {...input} />
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

/** A password that the person chooses. */
export const NewPassword = ({ label, name }: { label: string; name: string }) => (
  <Field label={label} name={name} type="password" autocomplete="new-password" minLength={8} required />
);

type ChoiceProps = SelectHTMLAttributes<HTMLSelectElement> & {
  label: string;
  choices: [value: string, text: string][];
};

/** A labelled list to choose from. */
export function Choice({ label, choices, value, ...select }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} class="input" {...select}>
        {choices.map(([choice, text]) => (
          <option key={choice} value={choice} selected={choice === value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}
