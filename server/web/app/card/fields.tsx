import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { PRIORITIES } from '../../../../shared/priority.ts';
import { board } from '../board/boardState.ts';
import { cssColor, TagChip } from '../board/cardTile.tsx';
import { ColorField } from '../board/column.tsx';
import { cardsOf } from '../board/places.ts';
import { Button, set, TextButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { useLoaded, Waiting } from '../parts/loaded.tsx';
import { SearchField } from '../parts/table.tsx';
import { inDays } from '../parts/time.tsx';
import { inProject, MOST_MEMBERS, members, readTags, tags } from '../project.ts';
import { DescriptionView } from './descriptionView.tsx';
import { Edited, type EditedField, type ShownCard, useField } from './editing.tsx';

type CardProps = { shown: ShownCard };
type Typing = { currentTarget: { value: string; validity: ValidityState } };

/** A date that is not whole yet has no value, as if it was cleared. */
const typing =
  ({ type }: EditedField, toText = (value: string) => value) =>
  ({ currentTarget: { value, validity } }: Typing) =>
    validity.badInput || type(toText(value));

/** When it is left like that, it shows again what counts. */
const finishing =
  (text: string) =>
  ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    if (currentTarget.validity.badInput) currentTarget.value = text;
  };

export function TitleField({ shown }: CardProps) {
  const field = useField(shown, 'title');
  const onInput = typing(field, (text) => text.replaceAll(/\s*\n\s*/g, ' '));
  return (
    <Edited field={field} view={<strong dir="auto">{field.now}</strong>}>
      <textarea id={field.id} class="input" rows={1} maxLength={255} dir="auto" value={field.text} onInput={onInput} />
    </Edited>
  );
}

/** Own cards have plain text, copies of templates HTML. */
export function DescriptionField({ shown }: CardProps) {
  const field = useField(shown, 'description');
  const isOpened = useSignal(false);
  const isHtml = shown.state.value.card.master_card_id !== null;
  const view = isHtml && field.now !== '' ? <DescriptionView html={field.now} /> : undefined;
  const isEditing = !isHtml || isOpened.value || field.isEdited;
  useEffect(() => {
    if (isOpened.value) document.getElementById(field.id)?.focus();
  }, [isOpened.value]);
  const area = { id: field.id, value: field.text, onInput: typing(field), onBlur: set(isOpened, false) };
  return (
    <Edited field={field} view={view} hasLines>
      {isEditing ? <textarea class="input" rows={3} dir="auto" {...area} /> : view}
      {!isEditing && <TextButton text="Edit" id={field.id} onClick={set(isOpened, true)} />}
      {isHtml && isEditing && (
        <p class="hint">From a template: it is HTML. Once you change it, the template no longer does.</p>
      )}
    </Edited>
  );
}

type ChoiceFieldProps = {
  field: EditedField;
  choices: readonly (readonly [value: string, text: string])[];
  /** What leads to a dialog with this content. */
  other?: string | false;
  children?: (choose: (value: string) => void) => ComponentChildren;
  color?: string | undefined;
};

const OTHER = '\n';

function ChoiceField({ field, choices, other, children, color }: ChoiceFieldProps) {
  const isOpen = useSignal(false);
  const all = choices.some(([value]) => value === field.text)
    ? choices
    : [...choices, [field.text, field.show(field.text)] as const];
  const choose = (value: string) => {
    isOpen.value = value === OTHER;
    if (value !== OTHER) field.choose(value);
  };
  return (
    <Edited field={field} view={color && <TagChip name={field.show(field.now)} color={color} />}>
      <select
        id={field.id}
        class="input"
        style={{ borderInlineStart: color && `0.5rem solid ${color}` }}
        value={field.text}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      >
        {all.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        {other && <option value={OTHER}>{other}</option>}
      </select>
      {isOpen.value && (
        <Dialog title={field.label} onClose={set(isOpen, false)}>
          {children?.(choose)}
        </Dialog>
      )}
    </Edited>
  );
}

export function OwnerField({ shown }: CardProps) {
  const field = useField(shown, 'owner_id');
  const known = [...members.value.values()].map(({ user_id, name }) => [String(user_id), name] as const);
  return (
    <ChoiceField field={field} choices={[['', 'Nobody'], ...known]} other={known.length >= MOST_MEMBERS && 'Search…'}>
      {(choose) => <MemberSearch onChoose={choose} />}
    </ChoiceField>
  );
}

function MemberSearch({ onChoose }: { onChoose: (id: string) => void }) {
  const search = useSignal('');
  const found = useLoaded(
    () => inProject().members.list.query({ search: search.peek() || null, limit: 20 }),
    [search.value],
  );
  return (
    <>
      <SearchField label="Search members" onSearch={(text) => set(search, text)()} />
      <Waiting loaded={found}>
        <div class="list">
          {found.data.value?.members.map(({ user_id, name, email }) => (
            <Button key={user_id} as="item" onClick={() => onChoose(String(user_id))}>
              {`${name}, ${email}`}
            </Button>
          ))}
        </div>
      </Waiting>
    </>
  );
}

export function TagField({ shown }: CardProps) {
  const field = useField(shown, 'tag_id');
  const active = [...tags.value.values()].filter((tag) => tag.is_active);
  const choices = [['', 'No tag'] as const, ...active.map(({ id, name }) => [String(id), name] as const)];
  const color = cssColor(tags.value.get(Number(field.text))?.color ?? null);
  return (
    <ChoiceField field={field} choices={choices} color={color} other="New tag…">
      {(choose) => (
        <Form
          action="Create it"
          draft={`${field.draft}.new`}
          onSubmit={async (values) => choose(await createTag(values))}
          onCancel={() => choose(field.text)}
        >
          <Field label="Name" name="name" required maxLength={255} autocomplete="off" dir="auto" autofocus />
          <ColorField color={null} />
        </Form>
      )}
    </ChoiceField>
  );
}

async function createTag({ name = '', color = '' }: Record<string, string>): Promise<string> {
  const { tag } = await inProject().tags.create.mutate({ name, color: color.trim() || null });
  await readTags();
  return String(tag.id);
}

/** The service knows what "open" and "closed" mean; others are up to the team. */
const COMMON_STATUSES = ['open', 'in_progress', 'closed'];

export function StatusField({ shown }: CardProps) {
  const field = useField(shown, 'status');
  const used = board.value ? cardsOf(board.value).map(({ status }) => status) : [];
  const choices = [...new Set([...COMMON_STATUSES, ...used])].map(
    (status) => [status, status.replaceAll('_', ' ')] as const,
  );
  return (
    <ChoiceField field={field} choices={choices} other="Another…">
      {(choose) => (
        <Form
          action="Use it"
          draft={`${field.draft}.other`}
          onSubmit={async ({ status = '' }) => choose(status)}
          onCancel={() => choose(field.text)}
        >
          <Field label="Status" name="status" required maxLength={50} autocomplete="off" dir="auto" autofocus />
        </Form>
      )}
    </ChoiceField>
  );
}

export const PriorityField = ({ shown }: CardProps) => (
  <ChoiceField field={useField(shown, 'priority')} choices={PRIORITIES.map((priority) => [priority, priority])} />
);

/** A time is optional: without one, it is due on that day wherever people are. */
export function DueField({ shown }: CardProps) {
  const field = useField(shown, 'due_date');
  const { id, text, now, choose } = field;
  const [date = '', time = ''] = text.split('T');
  const toText = (day: string, hour: string) => day && (hour ? `${day}T${hour}` : day);
  const typeDate = typing(field, (day) => toText(day, time));
  const typeTime = typing(field, (hour) => toText(date, hour));
  const timeInput = { value: time, onInput: typeTime, onBlur: finishing(time) };
  return (
    <Edited field={field}>
      <div class="due">
        <input id={id} type="date" class="input" value={date} onInput={typeDate} onBlur={finishing(date)} />
        {date && <input type="time" class="input" aria-label="Time, if any" {...timeInput} />}
        {now && <TextButton text="No date" onClick={() => choose('')} />}
      </div>
    </Edited>
  );
}

export function SnoozeField({ shown }: CardProps) {
  const field = useField(shown, 'snoozed_until');
  const { id, text, now, choose } = field;
  return (
    <Edited field={field}>
      <div class="due">
        <input
          id={id}
          type="datetime-local"
          class="input"
          value={text}
          onInput={typing(field)}
          onBlur={finishing(text)}
        />
        {now ? (
          <TextButton text="End snooze" onClick={() => choose('')} />
        ) : (
          <TextButton text="Until tomorrow" onClick={() => choose(`${inDays(1)}T09:00`)} />
        )}
      </div>
    </Edited>
  );
}
