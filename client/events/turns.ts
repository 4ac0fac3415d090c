/** Runs tasks with the same key one after the other. */
export function makeTurns() {
  const last = new Map<string, Promise<unknown>>();
  return async <Result>(key: string, work: () => Promise<Result>): Promise<Result> => {
    const turn = (last.get(key) ?? Promise.resolve()).then(work);
    const ended = turn.catch(() => undefined);
    last.set(key, ended);
    await ended;
    if (last.get(key) === ended) last.delete(key);
    return turn;
  };
}
