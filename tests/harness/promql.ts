import { parser } from '@prometheus-io/lezer-promql';

/** Evaluates the part of PromQL that the alerts use, and throws for anything else. */

type Labels = Record<string, string>;
export type Sample = { labels: Labels; value: number };
/** What Prometheus reads from all instances at one time. */
export type Scrape = { seconds: number; samples: Sample[] };
export type Rule = { alert: string; expr: string; for?: string };

/** Whether the alert fires at each scrape: a result with the same labels lasts for the time of `for`. */
export function firing({ expr, for: duration = '' }: Pick<Rule, 'expr' | 'for'>, scrapes: Scrape[]): boolean[] {
  let pending = new Map<string, number>();
  return scrapes.map(({ seconds }, at) => {
    const found = evaluate(expr, scrapes.slice(0, at + 1)).map(({ labels }) => keyOf(labels));
    pending = new Map(found.map((key) => [key, pending.get(key) ?? seconds]));
    return [...pending.values()].some((since) => seconds - since >= secondsOf(duration));
  });
}

/** The samples of a page of metrics, with labels of the instance. */
export const parseSamples = (text: string, more: Labels = {}): Sample[] =>
  [...text.matchAll(/^([\w:]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, __name__ = '', labels = '', value]) => {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text]);
    return { labels: { __name__, ...more, ...Object.fromEntries(pairs) }, value: Number(value) };
  });

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };
export const secondsOf = (duration: string): number =>
  [...duration.matchAll(/(\d+)([smhd])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0);

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];
type Part = { name: string; text: string; parts: Part[] };

/** The result at the time of the last scrape. A series that the last scrape does not have has ended. */
export function evaluate(expr: string, scrapes: Scrape[]): Sample[] {
  const now = scrapes.at(-1)!;
  return vectorOf(partOf(parser.parse(expr).topNode.firstChild!));

  function partOf(node: SyntaxNode): Part {
    const parts: Part[] = [];
    for (let child = node.firstChild; child; child = child.nextSibling) parts.push(partOf(child));
    return { name: node.name, text: expr.slice(node.from, node.to), parts };
  }

  function vectorOf({ name, text, parts }: Part): Sample[] {
    const [first, second, third] = parts as [Part, Part, Part];
    if (name === 'VectorSelector') return now.samples.filter(selects(parts));
    if (name === 'FunctionCall') return call(first.text, second.parts as [Part, Part]);
    if (name === 'AggregateExpr') return aggregate(first.text, parts.slice(1));
    if (name !== 'BinaryExpr' || parts.length > 3) throw unsupported(text);
    const isNumber = third.name === 'NumberDurationLiteral';
    return combine(vectorOf(first), second.text, isNumber ? Number(third.text) : vectorOf(third));
  }

  /** Unlike Prometheus, `increase` and `rate` do not extrapolate to the whole window. */
  function call(name: string, [first, second]: [Part, Part]): Sample[] {
    if (name === 'histogram_quantile')
      return grouped(vectorOf(second), ['le'], (buckets) => quantileOf(Number(first.text), buckets));
    const compute = OVER_TIME[name];
    if (!compute) throw unsupported(name);
    const seconds = secondsOf(first.parts[1]!.text);
    const inWindow = scrapes.filter((scrape) => scrape.seconds > now.seconds - seconds);
    const samples = inWindow.flatMap((scrape) => scrape.samples.filter(selects(first.parts[0]!.parts)));
    const computed = grouped(samples, [], (series) => compute(valuesOf(series), seconds));
    return computed.filter(({ value }) => !Number.isNaN(value));
  }

  function aggregate(name: string, parts: Part[]): Sample[] {
    const [compute, vector] = [AGGREGATES[name], vectorOf(parts.at(-1)!.parts[0]!)];
    const [modifier, labels] = parts.length > 1 ? parts[0]!.parts : [];
    if (!compute || modifier?.name === 'Without') throw unsupported(name);
    const kept = labels?.parts.map(({ text }) => text) ?? [];
    const others = vector.flatMap((sample) => Object.keys(sample.labels)).filter((label) => !kept.includes(label));
    return grouped(vector, others, (group) => compute(valuesOf(group)));
  }
}

const selects = ([name, matchers]: Part[]) => {
  const isMatch = ({ labels }: Sample, [label, operator, text]: [Part, Part, Part]) => {
    const [value, wanted] = [labels[label.text] ?? '', text.text.slice(1, -1)];
    const isEqual = operator.text.endsWith('~') ? new RegExp(`^(?:${wanted})$`).test(value) : value === wanted;
    return isEqual !== operator.text.startsWith('!');
  };
  const all = (matchers?.parts ?? []).map(({ parts }) => parts as [Part, Part, Part]);
  return (sample: Sample) => sample.labels.__name__ === name!.text && all.every((parts) => isMatch(sample, parts));
};

const unsupported = (text: string) => new Error(`The evaluator of PromQL does not know: ${text}`);
const keyOf = (labels: Labels) => JSON.stringify(Object.entries(labels).sort());
const without = (labels: Labels, names: string[] = []): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => name !== '__name__' && !names.includes(name)));

/** One sample for all that differ only in these labels. */
const grouped = (samples: Sample[], names: string[], compute: (group: Sample[]) => number): Sample[] =>
  [...Map.groupBy(samples, ({ labels }) => keyOf(without(labels, names))).values()].map((group) => ({
    labels: without(group[0]!.labels, names),
    value: compute(group),
  }));
const valuesOf = (samples: Sample[]) => samples.map(({ value }) => value);

const AGGREGATES: Record<string, (values: number[]) => number> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  count: (values) => values.length,
};

/** NaN without two samples. A counter that is lower than before has begun again at 0. */
const increase = ([first = 0, ...others]: number[]): number => {
  let [total, before] = [others.length > 0 ? 0 : Number.NaN, first];
  for (const value of others) [total, before] = [total + value - (value < before ? 0 : before), value];
  return total;
};
const OVER_TIME: Record<string, (values: number[], seconds: number) => number> = {
  increase,
  rate: (values, seconds) => increase(values) / seconds,
  changes: (values) => values.filter((value, at) => at > 0 && value !== values[at - 1]).length,
};

type Operators = Record<string, (left: number, right: number) => number | boolean>;
const ARITHMETIC: Operators = { '+': (left, right) => left + right, '/': (left, right) => left / right };
const ORDER: Operators = { '>': (left, right) => left > right, '<': (left, right) => left < right };
const OPERATORS: Operators = { ...ARITHMETIC, ...ORDER, '==': (left, right) => left === right };

/** A comparison keeps the samples on its left for which it holds. Two vectors match by all their labels. */
function combine(left: Sample[], operator: string, right: number | Sample[]): Sample[] {
  const compute = OPERATORS[operator];
  if (!compute) throw unsupported(operator);
  return left.flatMap((sample) => {
    const labels = without(sample.labels);
    const isSame = (other: Sample) => keyOf(without(other.labels)) === keyOf(labels);
    const other = typeof right === 'number' ? right : right.find(isSame)?.value;
    const value = other === undefined ? false : compute(sample.value, other);
    return typeof value === 'number' ? [{ labels, value }] : value ? [sample] : [];
  });
}

/** Of buckets in their order. Interpolates within one; above the last limit, the result is that limit. */
function quantileOf(quantile: number, buckets: Sample[]): number {
  const rank = quantile * buckets.at(-1)!.value;
  const at = buckets.findIndex(({ value }) => value >= rank);
  const [from, to] = [Number(buckets[at - 1]?.labels.le ?? 0), Number(buckets[at]!.labels.le)];
  const below = buckets[at - 1]?.value ?? 0;
  return Number.isNaN(to) ? from : from + ((to - from) * (rank - below)) / (buckets[at]!.value - below);
}
