import { BlockList, isIP, isIPv6 } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

const WILDCARD = new BlockList();
WILDCARD.addAddress('0.0.0.0');
WILDCARD.addAddress('::', 'ipv6');

/** Whether a service on this host is reachable only from this machine. An unknown name counts as reachable from outside. */
export const isLoopback = (host: string) => host.toLowerCase() === 'localhost' || isOn(LOOPBACK, host);

/** Whether it means all addresses of the machine, so it is not an address to open. */
export const isWildcard = (host: string) => host === '0' || isOn(WILDCARD, host);

/** The address of a service without `PUBLIC_URL`; localhost for a wildcard. */
export function ownAddress(host: string, port: number): string {
  if (isWildcard(host)) return `http://localhost:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

const isOn = (list: BlockList, host: string) => isIP(host) !== 0 && list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
