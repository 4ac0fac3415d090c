import { describe, expect, it } from 'vitest';
import { canonicalAddress, networkOf } from '../../server/runtime/address.ts';
import { isLoopback, isWildcard, ownAddress } from '../../server/runtime/host.ts';

describe('an address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8::192.0.2.33', '2001:db8::c000:221'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
    ['::FFFF:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['0:0:0:0:0:ffff:255.254.0.9', '255.254.0.9'],
  ])('%s is normalised to %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical);
  });

  it('is not a name, a port, brackets, a space or too many or too large parts', () => {
    const others = 'localhost,10.0.0,10.0.0.256,010.0.0.1,10.0.0.1:80,[::1],::1::,1:2:3:4:5:6:7:8:9,2001:db8::g, ::1,';

    expect(others.split(',').filter((text) => canonicalAddress(text) !== undefined)).toEqual([]);
  });
});

describe('a network', () => {
  it.each([
    ['2001:DB8:0001:02FF:3:4:5:6', '2001:db8:1:2ff', '2001:db8:1:200', '2001:db8:1'],
    ['2001:db8:1:2::', '2001:db8:1:2', '2001:db8:1:0', '2001:db8:1'],
    ['::1', '0:0:0:0', '0:0:0:0', '0:0:0'],
    ['::ffff:10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.1'],
    ['command line', 'command line', 'command line', 'command line'],
  ])('of %s is %s (/64), %s (/56) or %s (/48)', (text, ...networks) => {
    expect(networkOf(text)).toBe(networks[0]);
    expect(([64, 56, 48] as const).map((bits) => networkOf(text, bits))).toEqual(networks);
  });
});

describe('a host', () => {
  const LOOPBACK = 'localhost LOCALHOST 127.0.0.1 127.255.255.254 ::1 0:0:0:0:0:0:0:1 0000::0001 ::ffff:127.0.0.1';
  const WILDCARDS = '0.0.0.0 0 :: 0:0:0:0:0:0:0:0 ::0 ::ffff:0.0.0.0';
  const OTHERS =
    '128.0.0.1 10.0.0.0 ::2 ::ffff:10.0.0.1 fe80::1 localhost.example.com 127.0.0.1.example.com 127.1 2130706433 [::1]';
  const all = [LOOPBACK, WILDCARDS, OTHERS].join(' ').split(' ');

  it('is loopback, a wildcard, or neither', () => {
    expect(all.filter(isLoopback)).toEqual(LOOPBACK.split(' '));
    expect(all.filter(isWildcard)).toEqual(WILDCARDS.split(' '));
  });

  it.each([
    ['127.0.0.1', 'http://127.0.0.1:3000'],
    ['::1', 'http://[::1]:3000'],
    ['boards.example.com', 'http://boards.example.com:3000'],
    ['0.0.0.0', 'http://localhost:3000'],
    ['::', 'http://localhost:3000'],
  ])('%s has the address %s', (host, address) => {
    expect(ownAddress(host, 3000)).toBe(address);
  });
});
