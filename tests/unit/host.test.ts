import { describe, expect, it } from 'vitest';
import { isLoopback, isWildcard, ownAddress } from '../../server/runtime/host.ts';

describe('isLoopback', () => {
  it.each([
    'localhost',
    'LOCALHOST',
    '127.0.0.1',
    '127.255.255.254',
    '::1',
    '0:0:0:0:0:0:0:1',
    '0000::0001',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
  ])('is true for %s', (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each([
    '0.0.0.0',
    '::',
    '0',
    '128.0.0.1',
    '10.0.0.1',
    '::2',
    '::ffff:10.0.0.1',
    'fe80::1',
    'localhost.example.com',
    '127.0.0.1.example.com',
    '127.1',
    '2130706433',
    '[::1]',
  ])('is false for %s', (host) => {
    expect(isLoopback(host)).toBe(false);
  });
});

describe('isWildcard', () => {
  it.each(['0.0.0.0', '0', '::', '0:0:0:0:0:0:0:0', '::0', '::ffff:0.0.0.0'])('is true for %s', (host) => {
    expect(isWildcard(host)).toBe(true);
  });

  it.each(['127.0.0.1', '::1', 'localhost', '10.0.0.0', 'example.com'])('is false for %s', (host) => {
    expect(isWildcard(host)).toBe(false);
  });
});

describe('ownAddress', () => {
  it.each([
    ['127.0.0.1', 'http://127.0.0.1:3000'],
    ['::1', 'http://[::1]:3000'],
    ['localhost', 'http://localhost:3000'],
    ['boards.example.com', 'http://boards.example.com:3000'],
    ['0.0.0.0', 'http://localhost:3000'],
    ['::', 'http://localhost:3000'],
  ])('of %s is %s', (host, address) => {
    expect(ownAddress(host, 3000)).toBe(address);
  });
});
