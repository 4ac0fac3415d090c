/** The servers of a `DATABASE_URL`, which may name several as libpq does: `postgresql://user:password@h1:5432,h2:5433/name`. */
export type DatabaseServers = {
  /** A URL for each host, in their order. */
  urls: [string, ...string[]];
  /** Connections must accept writes: the default with several hosts, since this service writes. */
  mustBeWritable: boolean;
};

export function parseDatabaseUrl(url: string): DatabaseServers {
  const [, before = '', hosts = '', after = ''] = AUTHORITY.exec(url) ?? [];
  const [first = '', ...others] = hosts.split(',').map((host) => before + host + after);
  const urls: DatabaseServers['urls'] = others.length > 0 ? [first, ...others] : [url];
  const wanted = targetOf(url) ?? (urls.length > 1 ? 'read-write' : 'any');
  return { urls, mustBeWritable: wanted === 'read-write' };
}

/** The hosts without user, password and parameters, for messages. */
export const hostsOf = (url: string) =>
  parseDatabaseUrl(url)
    .urls.map((one) => new URL(one).host)
    .join(',');

export const databaseNameOf = (url: string) => new URL(parseDatabaseUrl(url).urls[0]).pathname.slice(1);

/** A list in libpq's parameters `host` and `port` would be taken for one name, and an empty host for the own machine. */
export function hasClearHosts(url: string): boolean {
  const { urls } = parseDatabaseUrl(url);
  const isListed = ['host', 'port'].some((name) => parametersOf(url).get(name)?.includes(','));
  return !isListed && (urls.length === 1 || urls.every((one) => URL.parse(one)?.hostname !== ''));
}

export const TARGETS = ['any', 'read-write'];
export const targetOf = (url: string) => parametersOf(url).get('target_session_attrs') ?? undefined;

const parametersOf = (url: string) => new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]);

/** The scheme with user and password, the hosts, and the rest. A password may contain `@`. */
const AUTHORITY = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s;
