import { makeCaller } from '../harness/caller.ts';
import { removeProcesses } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { type Load, load } from './load.ts';
import { onStage, type Stage } from './stage.ts';
import { median } from './table.ts';
import { cpuMilliseconds } from './usage.ts';
import { statusOf, WORKLOADS, type Workload } from './workloads.ts';

/** Compares calls with API keys and calls with tokens: `npm run bench:keys`. */

const options = programOptions('npm run bench:keys --', { seconds: '2', rounds: '9' });
const [seconds, rounds] = [Number(options.seconds), Number(options.rounds)];
const COMPARED = ['boards/list', 'boards/get', 'cards/create'];

try {
  await onStage(async (stage) => {
    const withKeys = { ...stage, tenants: await withKeysOf(stage) };
    for (const workload of WORKLOADS.filter(({ name }) => COMPARED.includes(name))) {
      console.log(await compare(workload, stage, withKeys));
    }
  });
} finally {
  await removeProcesses();
}

/** In turns, so that both meet the same state of the machine. */
async function compare(workload: Workload, withTokens: Stage, withKeys: Stage): Promise<string> {
  const [tokens, keys] = [withTokens, withKeys].map((stage) => ({ stage, shares: [] as Load[], cpu: 0 }));
  for (const { stage } of [tokens!, keys!]) await send(workload, stage, 3);
  for (let round = 0; round < rounds; round++) {
    for (const measured of round % 2 === 0 ? [tokens!, keys!] : [keys!, tokens!]) {
      const before = cpuMilliseconds(measured.stage.service.pid);
      measured.shares.push(await send(workload, measured.stage, seconds));
      measured.cpu += cpuMilliseconds(measured.stage.service.pid) - before;
    }
  }
  const perSecond = tokens!.shares.map((one, at) => keys!.shares[at]!.requestsPerSecond / one.requestsPerSecond);
  const cpuOf = ({ shares, cpu }: typeof tokens & object) => cpu / shares.reduce((sum, { count }) => sum + count, 0);
  const [cpuOfToken, cpuOfKey] = [cpuOf(tokens!), cpuOf(keys!)];
  return `${workload.name}: with keys ${percent(median(perSecond))} calls per second, ${percent(cpuOfKey / cpuOfToken)} CPU time of Node (${cpuOfKey.toFixed(3)} instead of ${cpuOfToken.toFixed(3)} ms per call)`;
}

function percent(share: number): string {
  return `${share >= 1 ? '+' : ''}${((share - 1) * 100).toFixed(1)} %`;
}

function send(workload: Workload, { service, tenants }: Stage, duration: number): Promise<Load> {
  return load(service.url, workload.requests('REST', tenants), statusOf(workload, 'REST'), duration);
}

/** The same users, each with a key that may call what is measured. */
async function withKeysOf({ service: { url }, tenants }: Stage): Promise<Stage['tenants']> {
  const keyed = async <User extends { token: string }>(user: User): Promise<User> => {
    const { rpc } = makeCaller(url, user.token);
    const scopes = ['boards:read', 'cards:read', 'cards:write'] as const;
    const { secret } = await rpc.keys.create.mutate({ name: 'Bench', scopes: [...scopes] });
    return { ...user, token: secret };
  };
  return {
    readers: await Promise.all(tenants.readers.map(keyed)),
    writers: await Promise.all(tenants.writers.map(keyed)),
    collectors: await Promise.all(tenants.collectors.map(keyed)),
  };
}
