import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { set } from './button.tsx';

type EditableProps = {
  text: string;
  /** What it is, for people who don't see it: "Title of the board". */
  label: string;
  canEdit: boolean;
  onSave: (text: string) => unknown;
};

/** A text that turns into a field when it is clicked. Enter or leaving it saves, Escape takes back. */
export function Editable({ text, label, canEdit, onSave }: EditableProps) {
  const isEditing = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (isEditing.value) input.current?.select();
  }, [isEditing.value]);
  if (!canEdit) return <span dir="auto">{text}</span>;

  const end = (isSaved: boolean) => {
    if (!isEditing.peek()) return;
    const typed = input.current?.value.trim() ?? '';
    isEditing.value = false;
    requestAnimationFrame(() => button.current?.focus({ preventScroll: true }));
    if (isSaved && typed !== '' && typed !== text) onSave(typed);
  };
  if (!isEditing.value)
    return (
      <button type="button" class="editable" ref={button} title={label} onClick={set(isEditing, true)} dir="auto">
        {text}
        <span class="unseen">, edit</span>
      </button>
    );
  return (
    <input
      ref={input}
      class="input"
      dir="auto"
      aria-label={label}
      maxLength={255}
      defaultValue={text}
      onBlur={() => end(true)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return;
        event.stopPropagation();
        end(event.key === 'Enter');
      }}
    />
  );
}
