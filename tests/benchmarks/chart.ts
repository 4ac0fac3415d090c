import type { Figures, MeasuredWorkload } from './calls.ts';
import { percent, precise, whole } from './table.ts';

const WIDTH = 960;
const TOP = 112;
const BAR = 16;
const ROW = 22;
const GAP = 16;
const NAME_AT = 24;
const SURFACE_AT = 212;
const SPEED = { at: 224, width: 215 };
const CPU = { at: 604, width: 220 };

/** An SVG chart of calls per second and CPU time per call, for light and dark pages. */
export function toChart(measured: MeasuredWorkload[], caption: string): string {
  let top = TOP;
  const groups = measured.map((each) => {
    const group = groupOf(each, top);
    top += each.figures.length * ROW + GAP;
    return group;
  });
  const height = top + 40;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Calls per second and CPU time per call, compared with the lean floor and with plain Fastify">
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 18px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .name { font-weight: 600; }
  .page { fill: #ffffff; }
  .lean { fill: #6e7781; }
  .fastify { fill: #b9a36b; }
  .rest { fill: #0b6e99; }
  .rpc { fill: #8a4baf; }
  .batch { fill: #c05a9b; }
  .database { opacity: 0.45; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    .page { fill: #0d1117; }
    .rest { fill: #3ba3d0; }
    .rpc { fill: #b184d6; }
    .batch { fill: #e08cc0; }
  }
</style>
<rect class="page" width="${WIDTH}" height="${height}" rx="8"/>
<text class="title" x="${NAME_AT}" y="34">Deckhand compared with the same calls on node:http and on plain Fastify</text>
<text class="quiet" x="${NAME_AT}" y="56">The lean floor (node:http) and Fastify run the least SQL that gives the same answers, with pg.</text>
<text x="${SPEED.at}" y="${TOP - 14}"><tspan class="name">Calls per second</tspan> <tspan class="quiet">and % of lean floor · Fastify</tspan></text>
<text x="${CPU.at}" y="${TOP - 14}"><tspan class="name">CPU time per call</tspan> <tspan class="quiet">Node, then PostgreSQL (pale)</tspan></text>
${groups.join('\n')}
<text class="quiet" x="${NAME_AT}" y="${height - 22}">${escaped(caption)}</text>
</svg>
`;
}

/** Each call has its own scale, since signing in takes a hundred times as long as the others. */
function groupOf({ workload, figures }: MeasuredWorkload, top: number): string {
  const most = Math.max(...figures.map(({ callsPerSecond }) => callsPerSecond));
  const costliest = Math.max(...figures.map(costOf));
  const rows = figures.map((each, at) => {
    const y = top + at * ROW;
    const text = y + BAR - 3;
    const kind = CLASSES[each.surface];
    const speed = (each.callsPerSecond / most) * SPEED.width;
    const node = (each.nodeMilliseconds / costliest) * CPU.width;
    const database = ((costOf(each) - each.nodeMilliseconds) / costliest) * CPU.width;
    return [
      `<text class="quiet" x="${SURFACE_AT}" y="${text}" text-anchor="end">${each.surface}</text>`,
      bar(kind, SPEED.at, y, speed),
      `<text x="${(SPEED.at + speed + 8).toFixed(1)}" y="${text}">${whole(each.callsPerSecond)} <tspan class="quiet">${each.shares.map(([, share]) => percent(share)).join(' · ')}</tspan></text>`,
      bar(kind, CPU.at, y, node),
      bar(`${kind} database`, CPU.at + node, y, database),
      `<text x="${(CPU.at + node + database + 8).toFixed(1)}" y="${text}">${precise(costOf(each))} ms</text>`,
    ].join('\n');
  });
  return [`<text class="name" x="${NAME_AT}" y="${top + BAR - 3}">${workload.name}</text>`, ...rows].join('\n');
}

const CLASSES = {
  'lean floor': 'lean',
  before: 'lean',
  Fastify: 'fastify',
  REST: 'rest',
  RPC: 'rpc',
  'RPC × 10': 'batch',
};

/** Without PostgreSQL's CPU time if that is unknown. */
const costOf = ({ nodeMilliseconds, databaseMilliseconds }: Figures) =>
  nodeMilliseconds + (Number.isNaN(databaseMilliseconds) ? 0 : databaseMilliseconds);

const bar = (kind: string, x: number, y: number, width: number) =>
  `<rect class="${kind}" x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${BAR}"/>`;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
