import { BlockList, isIP, isIPv4 } from 'node:net';

/** Networks that are not on the internet: private, shared (CGNAT), loopback, link-local, multicast, reserved, documentation. */
const NOT_PUBLIC = new BlockList();
for (const network of [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  // Within 2000::/3: Teredo and other protocols, documentation, and 6to4, which contains an IPv4 address.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
]) {
  const [address = '', bits] = network.split('/');
  NOT_PUBLIC.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
}

/** Global unicast. Outside of it are loopback, link-local and unique local addresses, NAT64, and IPv4 mapped to IPv6. */
const PUBLIC_IPV6 = new BlockList();
PUBLIC_IPV6.addSubnet('2000::', 3, 'ipv6');

/** Whether an IP address is on the internet, so that it is nothing inside of our own network. */
export function isPublicAddress(address: string): boolean {
  // Not with a zone either, which is for link-local addresses.
  if (isIP(address) === 0 || address.includes('%')) return false;
  if (isIPv4(address)) return !NOT_PUBLIC.check(address);
  return PUBLIC_IPV6.check(address, 'ipv6') && !NOT_PUBLIC.check(address, 'ipv6');
}
