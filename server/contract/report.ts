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
  /** Operations of which no success was seen, by reason. */
  unseen: Record<string, string[]>;
  /** What could not be removed after `--write`. */
  left: string[];
};

/**
 * Each problem once, with the surfaces, statuses and calls that have it: a header that is lost everywhere is one line, and so is a
 * field that is wrong in many answers.
 */
export function problemsOf({ cases }: Pick<Report, 'cases'>): { problem: string; check: string; calls: string[] }[] {
  const found = cases.flatMap(({ check, call, problems }) =>
    problems.map((problem) => ({ check, call, ...partsOf(problem) })),
  );
  return [...Map.groupBy(found, ({ text }) => kindOf(text)).values()].map((same) => ({
    problem: `${placesOf(same)}${same[0]!.text}`,
    check: same[0]!.check,
    calls: [...new Set(same.map(({ call }) => call))],
  }));
}

/** What problems of one fault have in common: all but the names of operations, the places in answers, and values. */
const kindOf = (text: string) =>
  text
    .replace(/^[a-z]+\.[a-z]+: /i, '')
    .replace(/^REST and RPC differ: ([^:]*\.)?([^:.]*): .*/s, 'differ: $2')
    .replace(/^(the model lacks a field of) .*/s, '$1')
    .replace(/^(✖ [^\n]*).*/s, '$1')
    .replace(/^\/\S* /, '')
    .replace(/"[^"]*"|\d+/g, '…');

type Parts = { surface?: string | undefined; status?: string | undefined; text: string };

/** `REST 200: The header …`. */
function partsOf(problem: string): Parts {
  const [, surface, status, text = problem] = /^(REST|RPC|MCP)(?: (\d{3}))?: (.*)$/s.exec(problem) ?? [];
  return { surface, status, text };
}

function placesOf(parts: Parts[]): string {
  const places = [...Map.groupBy(parts, ({ surface }) => surface)].map(([surface, own]) => {
    const statuses = [...new Set(own.flatMap(({ status }) => status ?? []))].toSorted();
    return [surface, statuses.join(', ')].filter(Boolean).join(' ');
  });
  const named = places.filter((place) => place !== '');
  return named.length === 0 ? '' : `${named.join('; ')}: `;
}
