import { isIPv4, isIPv6 } from 'node:net';

/** The one spelling of an IP address (RFC 5952), an IPv4 address inside IPv6 as IPv4; `undefined` of anything else. */
export function canonicalAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text)) return undefined;

  const [address] = text.split('%');
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = IPV4_MAPPED.exec(canonical) ?? [];
  return high && low ? toIPv4(Number.parseInt(high, 16), Number.parseInt(low, 16)) : canonical;
}

/**
 * The network that an address belongs to: its first bits with IPv6, where whoever has one address has 2^64 of them, and
 * often 2^72 or 2^80; with IPv4 the address itself. Text that is no address stays as it is.
 */
export function networkOf(text: string, bits: 64 | 56 | 48 = 64): string {
  const address = canonicalAddress(text) ?? text;
  if (!isIPv6(address)) return address;

  const [front = [], back = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  const groups = [...front, ...zeros, ...back].slice(0, Math.ceil(bits / 16));
  if (bits === 56) groups[3] = (Number.parseInt(groups[3]!, 16) & 0xff00).toString(16);
  return groups.join(':');
}

const IPV4_MAPPED = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/;

const toIPv4 = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join('.');
