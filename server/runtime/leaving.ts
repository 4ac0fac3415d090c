/** Whether the caller of a request has left. Unlike an `AbortController`, it takes no time to make. */
export class Leaving {
  isGone = false;
  private controller: AbortController | undefined;
  private callbacks: Set<() => void> | undefined;

  /** For those who need a signal. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.isGone) this.controller.abort();
    return this.controller.signal;
  }

  /** Calls back when the caller leaves. */
  add(callback: () => void): void {
    this.callbacks ??= new Set();
    this.callbacks.add(callback);
  }

  remove(callback: () => void): void {
    this.callbacks?.delete(callback);
  }

  leave(): void {
    this.isGone = true;
    this.controller?.abort();
    for (const callback of this.callbacks ?? []) callback();
  }
}
