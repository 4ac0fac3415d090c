import { BlockList, isIP, isIPv6 } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

const WILDCARD = new BlockList();
WILDCARD.addAddress('0.0.0.0');
WILDCARD.addAddress('::', 'ipv6');

/** Whether only this machine reaches a service that listens there. A name that we don't know counts as reachable. */
export const isLoopback = (host: string) => host.toLowerCase() === 'localhost' || isOn(LOOPBACK, host);

/** Whether it stands for every address of the machine, and so for none that people could open. */
export const isWildcard = (host: string) => host === '0' || isOn(WILDCARD, host);

/** The address of a service without `PUBLIC_URL`. On every address, the one that works on this machine at least. */
export function ownAddress(host: string, port: number): string {
  if (isWildcard(host)) return `http://localhost:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

const isOn = (list: BlockList, host: string) => isIP(host) !== 0 && list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
