import { isIPv4 } from 'node:net';

/** The hosts that webhooks may call. Other machines that reach the sandbox must not reach ports of this machine through it. */
export const allowedReceivers = (host: string, named: string[]) => [
  ...(isLoopback(host) ? THIS_MACHINE : []),
  ...named,
];

const THIS_MACHINE = ['127.0.0.1:*', 'localhost:*', '[::1]:*'];

const isLoopback = (host: string) =>
  ['localhost', '::1'].includes(host.toLowerCase()) || (isIPv4(host) && host.startsWith('127.'));
