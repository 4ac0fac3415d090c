import './desk.css';
import './operators.css';
import { useSignal } from '@preact/signals';
import type { ComponentChildren, ComponentProps } from 'preact';
import { Action } from '../parts/action.tsx';
import { Button, set } from '../parts/button.tsx';
import { ask } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import { say } from '../parts/message.tsx';

type Children = { children?: ComponentChildren };

/** `up` is the list that it belongs to. */
export const DeskPage = ({
  title,
  up,
  children,
}: Children & { title: string; up?: { href: string; text: string } }) => (
  <article class="desk">
    {up && <a href={up.href}>{up.text}</a>}
    <h1 dir="auto">{title}</h1>
    {children}
  </article>
);

/** Names with their values. A name without a value is not shown. */
export const Facts = ({ facts }: { facts: [name: string, value: ComponentChildren][] }) => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <div key={name} hidden={!value}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

export type Step = {
  label: string;
  run: () => Promise<unknown>;
  isOffered?: boolean;
  /** What goes, and how much of it: asked before. */
  question?: string | undefined;
  isDestructive?: boolean;
  /** Said afterwards. */
  done?: string;
};

type StepsProps = { steps: Step[]; as?: 'link' | 'quiet'; of?: string };

/** What can be done now; `of` names the row of a table. */
export const Steps = ({ steps, as = 'quiet', of }: StepsProps) => (
  <div class="choices">
    {steps
      .filter(({ isOffered }) => isOffered !== false)
      .map((step) => (
        <Action key={step.label} as={as} of={of} run={() => take(step, of)}>
          {step.label}
        </Action>
      ))}
  </div>
);

async function take({ label, run, question, isDestructive = false, done }: Step, of?: string): Promise<void> {
  const title = of ? `${label}: ${of}?` : `${label}?`;
  if (question && !(await ask({ title, text: question, action: label, isDestructive }))) return;
  await run();
  if (done) say(done);
}

/** The one list of a response. */
type RowOf<Answer> = { [Name in keyof Answer]: Answer[Name] extends (infer Row)[] ? Row : never }[keyof Answer];

/** A page of a list, for `usePages`. */
export async function asPage<Answer extends { next_cursor: string | null }>(call: Promise<Answer>) {
  const { next_cursor: next, ...answer } = await call;
  return { rows: Object.values(answer)[0] as RowOf<Answer>[], next };
}

type AddProps = Children & { label: string; onSubmit: ComponentProps<typeof Form>['onSubmit'] };

/** A button that opens a form. */
export function AddForm({ label, onSubmit, children }: AddProps) {
  const isOpen = useSignal(false);
  const close = set(isOpen, false);
  return !isOpen.value ? (
    <p>
      <Button onClick={set(isOpen, true)}>{label}</Button>
    </p>
  ) : (
    <Form
      class="box"
      action="Create"
      draft={label}
      onCancel={close}
      onSubmit={(values, form) => onSubmit(values, form).then(close)}
    >
      <h2>{label}</h2>
      {children}
    </Form>
  );
}
