import { promises as dns } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';

/**
 * Finds the IP addresses of a host name. `isInternal`: the operator allows this host, so its name may be short, and is also looked
 * for in the search domains of this machine.
 */
export type FindAddresses = (
  hostname: string,
  options: { isInternal: boolean; signal: AbortSignal },
) => Promise<string[]>;

/** A name without addresses. The message is for owners of webhooks. */
export class UnknownHost extends Error {}

type Options = {
  /** Those of this machine by default. */
  nameservers?: readonly string[];
  hostsFile?: string;
  resolverFile?: string;
};

/**
 * Asks nameservers itself. The system's own lookup takes a thread of the pool that connections to the database need, and can't be
 * ended: a few receivers with silent nameservers would stop the whole node.
 */
export function makeAddressFinder({
  nameservers,
  hostsFile = '/etc/hosts',
  resolverFile = '/etc/resolv.conf',
}: Options = {}): FindAddresses {
  const readHosts = readParsed(hostsFile, parseHosts);
  const readSearch = readParsed(resolverFile, parseSearch);
  return async (hostname, { isInternal, signal }) => {
    const known = isLocal(hostname) ? LOOPBACK : readHosts().get(withoutDot(hostname));
    if (known) return known;
    for (const name of isInternal ? searchedNames(hostname, readSearch()) : [hostname]) {
      const found = await askNameservers(name, nameservers, signal);
      if (found.length > 0) return found;
    }
    throw new UnknownHost('The host name was not found.');
  };
}

const withoutDot = (hostname: string) => hostname.replace(/\.$/, '');

/** Names that never leave the machine (RFC 6761). */
const isLocal = (hostname: string) => /(^|\.)localhost\.?$/.test(hostname);
const LOOPBACK = ['127.0.0.1', '::1'];

/** How long a nameserver may take to answer a question, and how often it is asked; the second time it may take longer. */
const PACE = { timeout: 1500, tries: 2 };
const LONGEST_MILLISECONDS = 5000;

/** A nameserver says that there is no such name, or no address of this family. */
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);

/** The addresses of both families. One that gets no answer does not matter if the other has addresses. */
async function askNameservers(
  name: string,
  nameservers: readonly string[] | undefined,
  stop: AbortSignal,
): Promise<string[]> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(LONGEST_MILLISECONDS)]);
  signal.throwIfAborted();
  // A new one each time, which reads the nameservers of the machine again, and can be cancelled alone.
  const resolver = new dns.Resolver(PACE);
  if (nameservers) resolver.setServers(nameservers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel);
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  signal.removeEventListener('abort', cancel);

  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const isSilent = answers.some((answer) => answer.status === 'rejected' && !NO_ADDRESS.has(answer.reason.code));
  if (found.length === 0 && isSilent) throw new UnknownHost('The nameservers of the host did not answer.');
  return found;
}

/** Parses a small file again only if it has changed; one that is missing is empty. */
function readParsed<Parsed>(file: string, parse: (text: string) => Parsed): () => Parsed {
  let parsed = parse('');
  let readAt: number | undefined;
  return () => {
    const changedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    if (changedAt !== readAt) parsed = parse(changedAt === undefined ? '' : readFileSync(file, 'utf8'));
    readAt = changedAt;
    return parsed;
  };
}

/** The words of each line, without comments. */
const wordsOf = (text: string) =>
  text.split('\n').map((line) =>
    line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/),
  );

function parseHosts(text: string): Map<string, string[]> {
  const addresses = new Map<string, string[]>();
  for (const [address = '', ...names] of wordsOf(text)) {
    for (const name of names) {
      const key = name.toLowerCase();
      addresses.set(key, [...(addresses.get(key) ?? []), address]);
    }
  }
  return addresses;
}

type Search = { domains: string[]; dots: number };

/** `search a.internal b.internal` and `options ndots:2`; the last line of each counts. */
function parseSearch(text: string): Search {
  const lines = wordsOf(text);
  const [, ...domains] = lines.findLast(([word = '']) => word === 'search' || word === 'domain') ?? [];
  const dots = lines.flat().findLast((word) => /^ndots:\d+$/.test(word));
  return { domains, dots: Number(dots?.slice('ndots:'.length) ?? 1) };
}

/** What the system asks for: a name with few dots in the search domains first, any other name as it is first. */
function searchedNames(hostname: string, { domains, dots }: Search): string[] {
  if (hostname.endsWith('.')) return [hostname];
  const searched = domains.map((domain) => `${hostname}.${withoutDot(domain)}`);
  const isShort = hostname.split('.').length - 1 < dots;
  return isShort ? [...searched, hostname] : [hostname, ...searched];
}
