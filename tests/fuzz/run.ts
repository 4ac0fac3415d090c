import { randomBytes, randomInt } from 'node:crypto';
import { givenSettings, removeProcesses, startService } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { type Finding, type FuzzReport, fuzz, makeLoad } from './fuzz.ts';
import { type MemorySample, memoryOf, memoryVerdict } from './memory.ts';
import { repeat } from './repeat.ts';
import { makeFuzzWorld } from './world.ts';

/**
 * `npm run test:night -- fuzz`: starts the service as a separate process and sends it random requests. Exits with 1 if an answer was a 500,
 * undocumented or slow, or if memory grew.
 *
 *   npm run test:night -- fuzz --requests 100000 --seed 1 --database postgresql
 *   npm run test:night -- fuzz --requests 1000000 --mix load
 */
const options = programOptions('npm run test:night -- fuzz', {
  requests: '100000',
  seed: String(randomInt(2 ** 31)),
  concurrency: '16',
  /** `embedded`, or `postgresql` for a new database on the server of the tests. */
  database: 'embedded',
  /** `fuzz`, or `load` to repeat a few thousand requests and watch memory over a long run. */
  mix: 'fuzz',
});

const SLOWEST_ALLOWED_MILLISECONDS = 1000;
const MOST_SHOWN = 20;
const SAMPLES = 50;
const DEMO_SUPERADMIN = { email: 'admin@demo.test', password: 'demo-password' };

const requests = Number(options.requests);
const seed = Number(options.seed);
const common = {
  RATE_LIMIT_PER_MINUTE: '100000000',
  METRICS_TOKEN: randomBytes(16).toString('hex'),
  TEST_CHECKOUT: 'on',
  LOG_LEVEL: 'error',
};

const kindsShown = new Set<string>();

const settings = { ...common, ...(await givenSettings('demo', { isEmbedded: options.database === 'embedded' })) };
let hasFailed = true;
try {
  hasFailed = await run();
} finally {
  await removeProcesses();
}
process.exit(hasFailed ? 1 : 0);

/** Returns whether anything was wrong. */
async function run(): Promise<boolean> {
  const service = await startService(settings);
  console.log(`${requests} requests to ${service.url} (${options.database}), --seed ${seed} --mix ${options.mix}`);
  const signedIn = await fetch(`${service.url}/api/v1/authenticate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(DEMO_SUPERADMIN),
  });
  const { data } = (await signedIn.json()) as { data: { token: string } };
  const world = await makeFuzzWorld(service.url, data.token);

  const samples: MemorySample[] = [];
  const begun = performance.now();
  let shown = 0;
  const report = await fuzz({
    world,
    seed,
    requests,
    concurrency: Number(options.concurrency),
    localAddress: '127.0.0.2',
    slowestAllowedMilliseconds: SLOWEST_ALLOWED_MILLISECONDS,
    drafts: options.mix === 'load' ? makeLoad(seed) : undefined,
    onProgress: async ({ sent, findings }) => {
      for (const finding of findings.slice(shown)) show(finding, service.url);
      shown = findings.length;
      if (sent < ((samples.length + 1) * requests) / SAMPLES) return;
      const sample = await memoryOf(service, common.METRICS_TOKEN);
      samples.push({ ...sample, sent });
      const rate = Math.round(sent / ((performance.now() - begun) / 1000));
      console.log(
        `${sent} sent, ${rate}/s, ${findings.length} wrong, ${sample.rss} MB resident, ${sample.heap ?? '?'} MB heap`,
      );
    },
  });
  const { code, stderr } = await service.stop('SIGTERM');

  print(report);
  const memory = memoryVerdict(samples);
  console.log(`\n${memory.text}`);
  if (code !== 0 || stderr !== '') console.log(`\nThe service ended with ${code}:\n${stderr.slice(-2000)}`);
  console.log(`\n${report.findings.length} answers were wrong. Seed: ${seed}`);
  return report.findings.length > 0 || memory.isGrowing || code !== 0;
}

function print({ counts, slowest, repeated }: FuzzReport) {
  const statuses = [...new Set([...counts.values()].flatMap((byStatus) => [...byStatus.keys()]))].sort();
  const rows = [...counts].sort().map(([kind, byStatus]) => [kind, Object.fromEntries(byStatus)] as const);
  console.log('\nAnswers by surface and kind of request:');
  console.table(Object.fromEntries(rows), statuses.map(String));
  console.log(`Slowest (${repeated} above ${SLOWEST_ALLOWED_MILLISECONDS} ms were repeated alone):`);
  for (const { milliseconds, label } of slowest) console.log(`  ${Math.round(milliseconds)} ms  ${label}`);
}

/** Prints one finding of each kind, with a command that repeats it. */
function show({ request, answer, faults }: Finding, url: string) {
  const kind = `${request.surface} ${request.kind}: ${faults.join(' ')}`.slice(0, 300);
  if (kindsShown.has(kind) || kindsShown.size === MOST_SHOWN) return;
  kindsShown.add(kind);
  console.log(`WRONG: ${kind}\n  ${answer?.status} ${answer?.text.slice(0, 300)}\n  ${repeat(request, url)}`);
}
