/** For so long after a call, this process looks at each announced change: the call may not be committed yet. */
const CALLED_FOR_MILLISECONDS = 5000;

let calledForUntil = 0;

/** After the start of an export, or an erasure: this process looks as soon as that is committed and announced. */
export function callForAccountWork(): void {
  calledForUntil = performance.now() + CALLED_FOR_MILLISECONDS;
}

export const isCalledFor = (): boolean => performance.now() < calledForUntil;
