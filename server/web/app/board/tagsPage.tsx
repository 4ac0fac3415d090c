import { useSignal } from '@preact/signals';
import { Button, set, TextButton } from '../parts/button.tsx';
import { ask, Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { say, sayFailure } from '../parts/message.tsx';
import { canChange, inProject, readTags, type Tag, tags } from '../project.ts';
import { client } from '../service.ts';
import { TagChip } from './cardTile.tsx';
import { ColorField } from './column.tsx';

/** The tags of the project, with their colours. */
export function TagsPage() {
  const edited = useSignal<Tag | 'new' | undefined>(undefined);
  const all = [...tags.value.values()];
  return (
    <>
      <h1>Tags</h1>
      {all.length === 0 && <p class="hint">No tag yet.</p>}
      <ul class="tag-rows">
        {all.map((tag) => (
          <li key={tag.id}>
            <TagChip {...tag} />
            {canChange.value && (
              <>
                <TextButton text="Edit" aria-label={`Edit the tag ${tag.name}`} onClick={set(edited, tag)} />
                <TextButton text="Delete" aria-label={`Delete the tag ${tag.name}`} onClick={() => remove(tag)} />
              </>
            )}
          </li>
        ))}
      </ul>
      {canChange.value && <Button onClick={set(edited, 'new')}>New tag</Button>}
      {edited.value && <TagDialog tag={edited.value} onClose={set(edited, undefined)} />}
    </>
  );
}

function TagDialog({ tag, onClose }: { tag: Tag | 'new'; onClose: () => void }) {
  const isNew = tag === 'new';
  const save = async ({ name = '', color = '' }: Record<string, string>) => {
    const values = { name: name.trim(), color: color.trim() || null };
    if (isNew) await inProject().tags.create.mutate(values);
    else await client.tags.update.mutate({ id: tag.id, ...values });
    await readTags();
    say(isNew ? `Added the tag “${values.name}”.` : 'Saved.');
    onClose();
  };
  return (
    <Dialog title={isNew ? 'New tag' : `Tag “${tag.name}”`} onClose={onClose}>
      <Form action="Save" draft={`tag.${isNew ? 'new' : tag.id}`} onSubmit={save} onCancel={onClose}>
        <Field label="Name" name="name" required maxLength={255} dir="auto" defaultValue={isNew ? '' : tag.name} />
        <ColorField color={isNew ? null : tag.color} />
      </Form>
    </Dialog>
  );
}

async function remove({ id, name }: Tag): Promise<void> {
  const text = `“${name}” goes to the trash, and is taken from its cards.`;
  if (!(await ask({ title: 'Delete the tag?', text, action: 'Delete it' }))) return;
  const restore = async () => {
    await client.tags.restore.mutate({ id }).catch((error) => sayFailure(error));
    await readTags();
  };
  try {
    await client.tags.delete.mutate({ id });
    await readTags();
    say(`Deleted the tag “${name}”.`, { label: 'Undo', run: restore });
  } catch (error) {
    sayFailure(error);
  }
}
