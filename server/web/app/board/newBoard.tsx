import { useSignal } from '@preact/signals';
import { go, projectAddress } from '../address.ts';
import { set, TextButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { inProject, project, readBoards } from '../project.ts';
import { madeBoard } from './boardState.ts';

export function NewBoard() {
  const isOpen = useSignal(false);
  const create = async ({ title = '' }: Record<string, string>) => {
    const { board } = await inProject().boards.create.mutate({ title });
    isOpen.value = false;
    await readBoards();
    madeBoard.value = board.id;
    go(projectAddress(project.peek()?.id ?? 0, 'boards', board.id));
  };
  return (
    <>
      <TextButton text="New board" onClick={set(isOpen, true)} />
      {isOpen.value && (
        <Dialog title="New board" onClose={set(isOpen, false)}>
          <Form
            action="Create"
            draft={`project.${project.value?.id}.board`}
            onSubmit={create}
            onCancel={set(isOpen, false)}
          >
            <Field label="Title" name="title" required maxLength={255} autocomplete="off" dir="auto" autofocus />
          </Form>
        </Dialog>
      )}
    </>
  );
}
