import { expect, it } from 'vitest';
import { allowedReceivers } from '../../client/testing/sandbox/receivers.ts';

it.each(['127.0.0.1', '127.0.0.2', 'localhost', '::1'])('a sandbox on %s calls receivers on this machine', (host) => {
  expect(allowedReceivers(host, ['app:8080'])).toEqual(['127.0.0.1:*', 'localhost:*', '[::1]:*', 'app:8080']);
});

it.each(['0.0.0.0', '::', '192.0.2.1', 'sandbox'])('a sandbox on %s calls only receivers that are named', (host) => {
  expect(allowedReceivers(host, ['app:8080'])).toEqual(['app:8080']);
});
