import { useSignal } from '@preact/signals';
import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes, TargetedSubmitEvent } from 'preact';
import { useId } from 'preact/hooks';
import type { DeckhandError } from '../../../../client/client.ts';
import { explain } from '../service.ts';

type FormProps = {
  /** What the button says. */
  action: string;
  /** Gets the values by name; what it throws is shown, and the form keeps what was typed. */
  onSubmit: (values: Record<string, string>, form: HTMLFormElement) => Promise<unknown>;
  children?: ComponentChildren;
  onCancel?: (() => void) | undefined;
  isDestructive?: boolean;
  isQuiet?: boolean;
  class?: string;
};

/** A form that sends once, shows that it waits, and says why it failed. */
export function Form({ action, onSubmit, children, onCancel, isDestructive, isQuiet, class: name }: FormProps) {
  const isBusy = useSignal(false);
  const failure = useSignal('');
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (isBusy.peek()) return;
    isBusy.value = true;
    failure.value = '';
    try {
      await onSubmit(Object.fromEntries(new FormData(form)) as Record<string, string>, form);
    } catch (error) {
      failure.value = explain(error);
      const [field] = Object.keys((error as DeckhandError).fields ?? {});
      (form.elements.namedItem(field ?? '') as HTMLElement | null)?.focus?.();
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form class={name} onSubmit={submit} aria-busy={isBusy}>
      {children}
      <p class="failure" role="alert">
        {failure}
      </p>
      <div class="choices">
        <button
          type="submit"
          class={`button ${isDestructive ? 'destructive' : isQuiet ? 'quiet' : ''}`}
          disabled={isBusy}
        >
          {action}
        </button>
        {onCancel && (
          <button type="button" class="button quiet" onClick={onCancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
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
