import { isIPv4, isIPv6, type Socket } from 'node:net';

/** The canonical form of an IP address (RFC 5952), with IPv4-mapped IPv6 as IPv4; `undefined` for anything else. */
export function canonicalAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text)) return undefined;

  const [address] = text.split('%');
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = IPV4_MAPPED.exec(canonical) ?? [];
  return high && low ? toIPv4(Number.parseInt(high, 16), Number.parseInt(low, 16)) : canonical;
}

/** The client's address. Some proxies append a port; a value that is not an address counts as the proxy's own. */
export function clientAddress({ ip, socket }: { ip: string; socket: Pick<Socket, 'remoteAddress'> }): string {
  const [, withoutPort = ip] =
    /^([\d.]+):\d+$|^\[(.+)\](?::\d+)?$/.exec(ip)?.filter((part) => part !== undefined) ?? [];
  return canonicalAddress(withoutPort) ?? canonicalAddress(socket.remoteAddress ?? '') ?? 'unknown';
}

/**
 * The IPv6 prefix, since one customer has 2^64 addresses and often 2^72 or 2^80; an IPv4 address as it is. Text that is not an
 * address is returned unchanged.
 */
export function networkOf(text: string, bits: 64 | 56 | 48 = 64): string {
  const address = canonicalAddress(text) ?? text;
  if (!isIPv6(address)) return address;

  const [front = [], back = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  const groups = [...front, ...zeros, ...back].slice(0, Math.ceil(bits / 16));
  if (bits === 56) groups[3] = (Number.parseInt(groups[3] ?? '0', 16) & 0xff00).toString(16);
  return groups.join(':');
}

const IPV4_MAPPED = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/;

const toIPv4 = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join('.');
