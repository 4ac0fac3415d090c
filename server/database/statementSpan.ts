import { isTraced, trace } from '../runtime/tracing.ts';

/** Runs a statement in a span, if its request has one. The span has the text without values. */
export function traceStatement<Result>(text: string, work: () => Promise<Result>): Promise<Result> {
  if (!isTraced()) return work();
  const { summary, attributes } = descriptionOf(text);
  return trace(summary, work, { kind: 'client', attributes });
}

type Description = ReturnType<typeof describe>;

/** Most statements have fixed texts. */
const descriptions = new Map<string, Description>();
const MOST_DESCRIPTIONS = 1000;

function descriptionOf(text: string): Description {
  const known = descriptions.get(text);
  if (known) return known;
  if (descriptions.size >= MOST_DESCRIPTIONS) descriptions.clear();
  const description = describe(text);
  descriptions.set(text, description);
  return description;
}

function describe(text: string) {
  const shown = withoutLiterals(text);
  const writes = [...shown.matchAll(WRITE)].map(([, verb = '', table]) => `${firstWord(verb).toUpperCase()} ${table}`);
  const summary = writes.length > 0 ? [...new Set(writes)].join(' ') : readSummary(shown);
  return {
    summary,
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.name': firstWord(summary),
      'db.query.summary': summary,
      'db.query.text': shown,
    },
  };
}

const firstWord = (text: string) => text.replace(/ .*/s, '');

/** `SELECT` and its table, else the first word of the statement. */
function readSummary(shown: string): string {
  const [first] = shown.split(/\W/, 1) as [string];
  if (!/^(select|with)$/i.test(first)) return first.toUpperCase();
  const outer = FROM.exec(withoutParentheses(shown))?.[1];
  const isOfStatement = outer !== undefined && new RegExp(`\\b${outer} as \\(`, 'i').test(shown);
  const table = outer === undefined || isOfStatement ? FROM.exec(shown)?.[1] : outer;
  return table ? `SELECT ${table}` : 'SELECT';
}

const FROM = /\bfrom "?(\w+)/i;

function withoutParentheses(text: string): string {
  const shorter = text.replace(/\([^()]*\)/g, '');
  return shorter === text ? text : withoutParentheses(shorter);
}

/** `for update` and `do update set` write no other table. */
const WRITE = /\b(insert into|delete from|(?<!\b(?:for|key|do) )update) "?(?!set\b)(\w+)/gi;

/** Values are bound, so literals are constants of the code; they are hidden nevertheless. Comments are left out. */
const withoutLiterals = (text: string) =>
  text
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/'(?:[^']|'')*'/g, '?')
    .replace(/(?<![\w$."])\d+(?:\.\d+)?\b/g, '?')
    .replace(/\s+/g, ' ')
    .trim();
