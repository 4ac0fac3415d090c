import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { say } from './message.tsx';

type SecretProps = {
  title: string;
  /** One line for each secret. */
  text: string;
  onDone: () => void;
  /** What it is for. */
  children?: ComponentChildren;
  /** The name of the file to download it as; none is offered without. */
  file?: string;
};

/** A secret that is shown only this once: in the page, since Escape closes a dialog. */
export function Secret({ title, text, onDone, children, file }: SecretProps) {
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    // A dialog that closes now gives the focus back first.
    const timer = setTimeout(() => place.current?.focus(), 50);
    return () => clearTimeout(timer);
  }, []);
  return (
    <section class="secret" ref={place} tabIndex={-1} aria-label={title}>
      <h2>{title}</h2>
      {children}
      <p>
        <strong>You will not see this again.</strong> Store it now.
      </p>
      <pre>{text}</pre>
      <div class="choices">
        <Button onClick={() => copy(text)}>Copy</Button>
        {file && (
          <Button as="quiet" onClick={() => download(file, text)}>
            Download
          </Button>
        )}
        <Button as="quiet" onClick={onDone}>
          I have stored it
        </Button>
      </div>
    </section>
  );
}

/** Browsers have no clipboard for pages without TLS, and may refuse it to others. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch {
    say('The browser does not allow that here. Select the text and copy it.');
  }
}

/** Saves a text as a file. */
export function download(name: string, text: string, type = 'text/plain'): void {
  const href = URL.createObjectURL(new Blob([`${text}\n`], { type }));
  Object.assign(document.createElement('a'), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
