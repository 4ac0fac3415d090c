import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { draftOf } from '../draft.ts';
import { set, TextButton } from './button.tsx';

type EditableProps = {
  text: string;
  /** What it is, for people who don't see it: "Title of the board". */
  label: string;
  /** The name of its draft. */
  draft: string;
  canEdit: boolean;
  onSave: (text: string) => unknown;
};

/** A text that turns into a field when it is clicked. Enter or leaving it saves, Escape keeps a draft. */
export function Editable({ text, label, draft: name, canEdit, onSave }: EditableProps) {
  const isEditing = useSignal(false);
  const [draft, keepDraft] = draftOf<string>(name);
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
    if (!isSaved) return;
    keepDraft(undefined);
    if (typed !== '' && typed !== text) onSave(typed);
  };
  if (!isEditing.value)
    return (
      <>
        <button type="button" class="editable" ref={button} title={label} onClick={set(isEditing, true)} dir="auto">
          {text}
          <span class="unseen">, edit</span>
        </button>
        {draft.value !== undefined && (
          <span class="hint drafted">
            unsaved draft <TextButton text="Drop the draft" onClick={() => keepDraft(undefined)} />
          </span>
        )}
      </>
    );
  return (
    <input
      ref={input}
      class="input"
      dir="auto"
      aria-label={label}
      maxLength={255}
      defaultValue={draft.peek() ?? text}
      onInput={({ currentTarget: { value } }) => keepDraft(value === text ? undefined : value)}
      onBlur={() => end(true)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'Escape') return;
        event.stopPropagation();
        end(event.key === 'Enter');
      }}
    />
  );
}
