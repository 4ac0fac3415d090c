import { useSignal } from '@preact/signals';
import type { ComponentProps } from 'preact';
import { Button, set } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { Form } from './form.tsx';

type FormButtonProps = Omit<ComponentProps<typeof Form>, 'onCancel'> &
  Pick<ComponentProps<typeof Button>, 'as' | 'of'> & { title?: string };

/** A button that opens a form in a dialog, which closes when it has succeeded. */
export function FormButton({ action, as = 'quiet', of, title = `${action}?`, onSubmit, ...form }: FormButtonProps) {
  const isOpen = useSignal(false);
  const close = set(isOpen, false);
  return (
    <>
      <Button as={as} of={of} onClick={set(isOpen, true)} children={action} />
      {isOpen.value && (
        <Dialog title={title} onClose={close}>
          <Form
            action={action}
            draft={title}
            {...form}
            onCancel={close}
            onSubmit={(...sent) => onSubmit(...sent).then(close)}
          />
        </Dialog>
      )}
    </>
  );
}
