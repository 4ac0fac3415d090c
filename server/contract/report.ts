/** What was checked: `check` is the kind of check, `call` the operation or request. */
export type Case = { check: string; call: string; problems: string[] };

/** Checks that something holds, and records what does not. */
export type RecordCase = (check: string, call: string, work: () => Promise<string[]>) => Promise<void>;

export type Report = {
  url: string;
  /** The version that the service's own document names. */
  version: string | undefined;
  cases: Case[];
  requests: number;
  /** Operations of this version that the service has on both surfaces. */
  operations: { known: number; found: number };
  /** Operations that the caller may not call, by reason. */
  denied: Record<string, string[]>;
  /** Operations of which no success was seen. */
  unseen: string[];
  /** What could not be removed after `--write`. */
  left: string[];
};

/** Each problem once, with the calls that have it. */
export function problemsOf({ cases }: Pick<Report, 'cases'>): { problem: string; check: string; calls: string[] }[] {
  const found = cases.flatMap(({ check, call, problems }) => problems.map((problem) => ({ check, call, problem })));
  return [...Map.groupBy(found, ({ problem }) => problem)].map(([problem, same]) => ({
    problem,
    check: same[0]!.check,
    calls: [...new Set(same.map(({ call }) => call))],
  }));
}
