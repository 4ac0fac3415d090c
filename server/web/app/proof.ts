import { signal } from '@preact/signals';

/** Set while a dialog asks for the password: some calls need it to be given within the last ten minutes. */
export const proofAsked = signal<((isGiven: boolean) => void) | undefined>(undefined);

let asking: Promise<boolean> | undefined;

/** Resolves to whether it was given; calls that need it at the same time share one dialog. */
export function askForProof(): Promise<boolean> {
  asking ??= new Promise<boolean>((resolve) => {
    proofAsked.value = resolve;
  }).finally(() => {
    proofAsked.value = undefined;
    asking = undefined;
  });
  return asking;
}
