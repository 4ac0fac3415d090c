import type { Signal } from '@preact/signals';
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'class'> & {
  /** How it looks; a full button if not given. */
  as?: 'quiet' | 'destructive' | 'link' | 'icon' | 'item' | 'main';
  /** Which row of a table it is for; read aloud after its text. */
  of?: string | undefined;
  children?: ComponentChildren;
};

const CLASSES = {
  quiet: 'button quiet',
  destructive: 'button destructive',
  main: 'button main',
  link: 'link',
  icon: 'icon',
  item: 'item',
};

/** A button that does something; forms have their own. */
export const Button = ({ as, of, ...more }: ButtonProps) => (
  <button type="button" class={as ? CLASSES[as] : 'button'} aria-label={of && `${more.children}: ${of}`} {...more} />
);

/** A handler that sets a signal: `onClick={set(isOpen, true)}`. */
export const set =
  <Value,>(signal: Signal<Value>, value: Value) =>
  () => {
    signal.value = value;
  };

export const Hint = ({ children }: { children: ComponentChildren }) => <p class="hint">{children}</p>;

/** A button that looks like a link, in one line: `<TextButton text="Save" onClick={save} />`. */
export const TextButton = ({ text, ...more }: Omit<ButtonProps, 'as' | 'children'> & { text: string }) => (
  <Button as="link" {...more}>
    {text}
  </Button>
);
