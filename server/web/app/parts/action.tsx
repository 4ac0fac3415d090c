import { useSignal } from '@preact/signals';
import type { ComponentProps } from 'preact';
import { Button } from './button.tsx';
import { sayFailure } from './message.tsx';

type ActionProps = Omit<ComponentProps<typeof Button>, 'onClick'> & { run: () => Promise<unknown> };

/** A button for calls: it shows that they run, runs them once at a time, and says why they failed. */
export function Action({ run, ...button }: ActionProps) {
  const isBusy = useSignal(false);
  const start = async () => {
    if (isBusy.peek()) return;
    isBusy.value = true;
    await run().catch((error: unknown) => sayFailure(error));
    isBusy.value = false;
  };
  return <Button {...button} aria-busy={isBusy} onClick={start} />;
}
