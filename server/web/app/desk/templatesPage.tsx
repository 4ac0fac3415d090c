import { projectAddress } from '../address.ts';
import { Hint } from '../parts/button.tsx';
import { Field } from '../parts/form.tsx';
import { FormButton } from '../parts/formButton.tsx';
import { usePages } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { useReload } from '../parts/reload.ts';
import { type Column, Table } from '../parts/table.tsx';
import { endOfDay, inDays, timeText } from '../parts/time.tsx';
import { canManage, inProject, project } from '../project.ts';
import type { client } from '../service.ts';
import { DeskPage, Steps } from './operators.tsx';

type Template = Awaited<ReturnType<typeof client.templates.list.query>>['templates'][number];

export function TemplatesPage() {
  const pages = usePages(async () => ({ rows: (await inProject().templates.list.query()).templates, next: null }), []);
  useReload(/^(template|board)\./, pages.reload);
  const columns: Column<Template>[] = [
    [
      'Board',
      ({ board_id, title }) => <a href={projectAddress(project.value?.id ?? 0, 'boards', board_id)}>{title}</a>,
    ],
    ['Release', releaseOf],
    ['What changed in it', ({ release_note, release_user_name }) => note(release_note, release_user_name)],
    ['State', stateOf],
  ];
  if (canManage.value) columns.push(['', (template) => <TemplateSteps template={template} onDone={pages.reload} />]);
  return (
    <DeskPage title="Templates">
      <Hint>Boards that came from a template. Its new releases change them, except for what was edited here.</Hint>
      <Table
        noun="board"
        pages={pages}
        columns={columns}
        keyOf={({ board_id }) => board_id}
        none="No board of this project came from a template."
      />
    </DeskPage>
  );
}

function releaseOf({ release_number, latest_number }: Template): string {
  if (release_number === null) return 'not known';
  return release_number === latest_number ? `${release_number}, the latest` : `${release_number} of ${latest_number}`;
}

const note = (text: string | null, name: string | null) => [text, name && `(${name})`].filter(Boolean).join(' ');

function stateOf({ hold_until, held_by_name, hold_note, pinned_count }: Template): string {
  const hold = hold_until && `Holds changes until ${timeText(hold_until)}. ${note(hold_note, held_by_name)}`;
  const pins = pinned_count > 0 && `Leaves out what was rolled back: ${pinned_count} of its rows.`;
  return [hold, pins].filter(Boolean).join(' ') || 'Takes changes.';
}

const HOLD_DAYS = 30;
const LONGEST_HOLD_DAYS = 366;

function TemplateSteps({ template, onDone }: { template: Template; onDone: () => Promise<void> }) {
  const { board_id, title, hold_until, hold_note, pinned_count } = template;
  const hold = async ({ until = '', note }: Record<string, string>) => {
    await inProject().templates.hold.mutate({ board_id, until: endOfDay(until), note: note || null });
    say(`${title} is left alone until then.`);
    onDone();
  };
  const days = { min: inDays(0), max: inDays(LONGEST_HOLD_DAYS - 1), value: inDays(HOLD_DAYS) };
  const steps = [
    {
      label: 'End the hold',
      run: () => inProject().templates.unhold.mutate({ board_id }).then(onDone),
      question: `What was left out meanwhile comes with the next sync, push or rollout, and may change ${title}.`,
      isOffered: hold_until !== null,
      done: `${title} takes changes again.`,
    },
    {
      label: 'Take rolled-back contents again',
      run: () => inProject().templates.unpin.mutate({ board_id }).then(onDone),
      question: `What a rollback has taken back in ${title} comes again with the next sync, push or rollout.`,
      isOffered: pinned_count > 0,
      done: `${title} takes again what was rolled back.`,
    },
  ];
  return (
    <div class="choices">
      <FormButton as="link" action="Hold changes" of={title} title={`Hold changes of ${title}`} onSubmit={hold}>
        <Hint>Until then, syncs, pushes and rollouts leave this board alone.</Hint>
        <Field label="Until the end of" name="until" type="date" required {...days} />
        <Field label="Why" name="note" maxLength={2000} defaultValue={hold_note ?? ''} dir="auto" />
      </FormButton>
      <Steps as="link" of={title} steps={steps} />
    </div>
  );
}
