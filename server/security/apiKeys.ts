import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { KEY_PREFIX } from '../../shared/key.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 30 digits of 62 are 178 random bits. */
export const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;

/** A new secret: the prefix, random digits, and a checksum, so that scanners find it and a mistyped one needs no look-up. */
export function makeKeySecret(): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => DIGITS[randomInt(DIGITS.length)]).join('');
  return withChecksum(KEY_PREFIX + random);
}

/** Whether a Bearer token is meant to be a key. */
export const isKeySecret = (token: string) => token.startsWith(KEY_PREFIX);

/** The hash to look a key up by; undefined if its checksum is wrong. */
export function readKeySecret(token: string): string | undefined {
  return withChecksum(token.slice(0, KEY_PREFIX.length + RANDOM_LENGTH)) === token ? hashKeySecret(token) : undefined;
}

/** A plain hash is enough for 178 random bits, and can be looked up. */
export const hashKeySecret = (secret: string) => hash('sha256', secret);

/** Appends the checksum to a prefix and its digits. */
export const withChecksum = (text: string) => text + inBase62(crc32(text)).padStart(CHECKSUM_LENGTH, '0');

function inBase62(number: number): string {
  const rest = Math.floor(number / DIGITS.length);
  return (rest > 0 ? inBase62(rest) : '') + DIGITS[number % DIGITS.length];
}
