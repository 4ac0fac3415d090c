import { residentMegabytes } from '../benchmarks/usage.ts';
import { median } from '../harness/load.ts';

export type MemorySample = { sent: number; rss: number; heap: number | undefined };

/** The memory of the service in MB: resident from /proc, and the JavaScript heap from its metrics. */
export async function memoryOf(
  { pid, url }: { pid: number; url: string },
  metricsToken: string,
): Promise<Omit<MemorySample, 'sent'>> {
  const headers = { authorization: `Bearer ${metricsToken}` };
  const metrics = await fetch(`${url}/metrics`, { headers }).then((response) => response.text());
  const heapBytes = /^nodejs_heap_size_used_bytes (\S+)/m.exec(metrics)?.[1];
  return {
    rss: Math.round(residentMegabytes(pid)),
    heap: heapBytes === undefined ? undefined : Math.round(Number(heapBytes) / 1024 / 1024),
  };
}

const ALLOWED_GROWTH = 1.1;
/** Before that, V8 still grows its heap to fit the load. */
const SHORTEST_RUN = 50_000;

/** Compares the medians of the second and the last fifth of a run; the first fifth is warm-up. */
export function memoryVerdict(samples: MemorySample[]): { text: string; isGrowing: boolean } {
  if ((samples.at(-1)?.sent ?? 0) < SHORTEST_RUN) {
    return { text: `Memory: only compared from ${SHORTEST_RUN} requests on.`, isGrowing: false };
  }
  const fifth = Math.floor(samples.length / 5);
  const early = median(samples.slice(fifth, 2 * fifth).map(({ rss }) => rss));
  const late = median(samples.slice(-fifth).map(({ rss }) => rss));
  const isGrowing = late > early * ALLOWED_GROWTH;
  const change = ((late / early - 1) * 100).toFixed(1);
  const text = `Memory: ${early} MB in the second fifth, ${late} MB in the last (${change} %): ${isGrowing ? 'GROWING' : 'flat'}.`;
  return { text, isGrowing };
}
