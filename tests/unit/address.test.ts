import { describe, expect, it } from 'vitest';
import { canonicalAddress, networkOf } from '../../server/runtime/address.ts';

describe('an address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8::192.0.2.33', '2001:db8::c000:221'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
    ['::1', '::1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['0:0:0:0:0:ffff:255.254.0.9', '255.254.0.9'],
    ['0000:0000:0000:0000:0000:ffff:0a00:0001', '10.0.0.1'],
  ])('%s is normalised to %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical);
  });

  it.each([
    '',
    'localhost',
    '10.0.0',
    '10.0.0.256',
    '010.0.0.1',
    '10.0.0.1:80',
    '[::1]',
    '::1::',
    '1:2:3:4:5:6:7:8:9',
    '2001:db8::g',
    ' ::1',
  ])('%j is not an address', (text) => {
    expect(canonicalAddress(text)).toBeUndefined();
  });
});

describe('a network', () => {
  it.each([
    ['2001:db8:1:2ff:3:4:5:6', '2001:db8:1:2ff', '2001:db8:1:200', '2001:db8:1'],
    ['2001:DB8:0001:02FF::', '2001:db8:1:2ff', '2001:db8:1:200', '2001:db8:1'],
    ['2001:db8:1:2::', '2001:db8:1:2', '2001:db8:1:0', '2001:db8:1'],
    ['2001:db8::6', '2001:db8:0:0', '2001:db8:0:0', '2001:db8:0'],
    ['::1', '0:0:0:0', '0:0:0:0', '0:0:0'],
    ['10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.1'],
    ['command line', 'command line', 'command line', 'command line'],
  ])('of %s is %s (/64), %s (/56) or %s (/48)', (text, of64, of56, of48) => {
    expect([networkOf(text), networkOf(text, 64), networkOf(text, 56), networkOf(text, 48)]).toEqual([
      of64,
      of64,
      of56,
      of48,
    ]);
  });
});
