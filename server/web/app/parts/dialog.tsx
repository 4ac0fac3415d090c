import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Button } from './button.tsx';

type DialogProps = {
  title: string;
  /** Without it, Escape does not close the dialog. */
  onClose?: () => void;
  children: ComponentChildren;
  class?: string;
};

/** A modal dialog. Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, children, class: name }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const open = () => dialog.current?.showModal();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    open();
    return () => before?.isConnected && before.focus();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} class={name} onClose={onClose ?? open} onCancel={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

type Question = { title: string; text: ComponentChildren; action: string; isDestructive: boolean };

const asked = signal<(Question & { answer: (isAgreed: boolean) => void }) | undefined>(undefined);

/** Asks before something that can't be taken back easily; names what goes. Resolves to whether the person agreed. */
export function ask(question: Omit<Question, 'isDestructive'> & { isDestructive?: boolean }): Promise<boolean> {
  return new Promise((answer) => {
    asked.value = { isDestructive: true, ...question, answer };
  });
}

/** The question of `ask`; once on the page. */
export function Question() {
  const question = asked.value;
  if (!question) return null;
  const answer = (isAgreed: boolean) => {
    asked.value = undefined;
    question.answer(isAgreed);
  };
  return (
    <Dialog title={question.title} onClose={() => answer(false)}>
      <div>{question.text}</div>
      <div class="choices">
        <Button {...(question.isDestructive && { as: 'destructive' as const })} onClick={() => answer(true)}>
          {question.action}
        </Button>
        <Button as="quiet" autofocus onClick={() => answer(false)}>
          Cancel
        </Button>
      </div>
    </Dialog>
  );
}
