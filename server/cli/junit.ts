import type { Case, Report } from '../contract/report.ts';
import { visible } from './visible.ts';

/** The checks as JUnit XML, which most CI systems show: a suite for each kind of check, a case for each call. */
export function junitOf({ url, cases }: Pick<Report, 'url' | 'cases'>): string {
  const suites = [...Map.groupBy(cases, ({ check }) => check)].map(([check, of]) => suiteOf(check, of));
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="${escaped(`deckhand contract ${url}`)}" ${countsOf(cases)}>
${suites.join('\n')}
</testsuites>
`;
}

const countsOf = (cases: Case[]) =>
  `tests="${cases.length}" failures="${cases.filter(({ problems }) => problems.length > 0).length}"`;

function suiteOf(check: string, cases: Case[]): string {
  return `  <testsuite name="${escaped(check)}" ${countsOf(cases)}>
${cases.map(caseOf).join('\n')}
  </testsuite>`;
}

function caseOf({ check, call, problems }: Case): string {
  const begin = `    <testcase classname="${escaped(check)}" name="${escaped(call)}"`;
  if (problems.length === 0) return `${begin}/>`;
  return `${begin}>
      <failure message="${escaped(problems[0]!)}">${escaped(problems.join('\n'))}</failure>
    </testcase>`;
}

/** Control characters are not allowed in XML. */
const escaped = (text: string) =>
  visible(text).replaceAll(
    /[&<>"]/g,
    (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character]!,
  );
