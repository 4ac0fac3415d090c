import { describe, expect, it } from 'vitest';
import { readSettings } from '../../server/env.ts';
import { isStartFailure } from '../../server/startFailure.ts';

const DATABASE_URL = 'postgresql://deckhand:hunter2@127.0.0.1:5432/deckhand';
const SECRET = 'hunter2 hunter2 hunter2 hunter2 ';

const DEFAULTS = {
  HOST: '127.0.0.1',
  PORT: 3000,
  DATABASE_POOL_SIZE: 10,
  DATA_DIR: './data',
  JWT_PREVIOUS_SECRETS: [],
  TOKEN_LIFETIME_HOURS: 12,
  RATE_LIMIT_PER_MINUTE: 600,
  TRUST_PROXY: false,
  ALLOWED_ORIGINS: [],
  LOG_LEVEL: 'info',
};

const EVERY_SETTING = {
  HOST: '0.0.0.0',
  PORT: '8080',
  DATABASE_URL,
  DATABASE_POOL_SIZE: '20',
  DATA_DIR: '/var/lib/deckhand',
  JWT_SECRET: SECRET,
  JWT_PREVIOUS_SECRETS: `${'a'.repeat(32)}, ${'b'.repeat(32)}`,
  TOKEN_LIFETIME_HOURS: '720',
  RATE_LIMIT_PER_MINUTE: '1000',
  REDIS_URL: 'rediss://127.0.0.1:6380',
  STRIPE_SECRET_KEY: 'sk_test_1',
  STRIPE_WEBHOOK_SECRET: 'whsec_1',
  PUBLIC_URL: 'https://api.example.com',
  TRUST_PROXY: 'on',
  ALLOWED_ORIGINS: 'https://app.example.com, http://localhost:5173',
  LOG_LEVEL: 'debug',
};

describe('settings', () => {
  it('are as documented when nothing is set', () => {
    expect(readSettings({})).toEqual(DEFAULTS);
  });

  it('are as given when everything is set', () => {
    expect(readSettings(EVERY_SETTING)).toEqual({
      ...EVERY_SETTING,
      PORT: 8080,
      DATABASE_POOL_SIZE: 20,
      JWT_PREVIOUS_SECRETS: ['a'.repeat(32), 'b'.repeat(32)],
      TOKEN_LIFETIME_HOURS: 720,
      RATE_LIMIT_PER_MINUTE: 1000,
      TRUST_PROXY: true,
      ALLOWED_ORIGINS: ['https://app.example.com', 'http://localhost:5173'],
    });
  });

  it('count as not set when they are empty', () => {
    const empty = Object.fromEntries(Object.keys(EVERY_SETTING).map((name) => [name, '']));

    expect(readSettings(empty)).toEqual(DEFAULTS);
  });

  it('leave the rest of the environment aside', () => {
    expect(readSettings({ HOME: '/root', PORTS: 'abc' })).toEqual(DEFAULTS);
  });

  it.each([
    ['HOST', '   '],
    ['PORT', 'abc'],
    ['PORT', '-1'],
    ['PORT', '65536'],
    ['PORT', '80.5'],
    ['PORT', '1e3'],
    ['PORT', '99999999999999999999'],
    ['DATABASE_URL', 'hunter2'],
    ['DATABASE_URL', 'mysql://deckhand:hunter2@127.0.0.1/deckhand'],
    ['DATABASE_URL', 'postgresql://deckhand:hunter2@127.0.0.1:99999/deckhand'],
    ['DATABASE_URL', 'postgresql://deckhand:hunter2@127.0.0.1:5432'],
    ['DATABASE_URL', 'postgresql://deckhand:hunter2%@127.0.0.1:5432/deckhand'],
    ['HOST', '   '],
    ['DATA_DIR', '   '],
    ['DATABASE_POOL_SIZE', '1'],
    ['DATABASE_POOL_SIZE', '1001'],
    ['DATA_DIR', '   '],
    ['JWT_SECRET', 'hunter2'],
    ['JWT_SECRET', SECRET.slice(1)],
    ['JWT_PREVIOUS_SECRETS', 'hunter2'],
    ['JWT_PREVIOUS_SECRETS', `${SECRET},hunter2`],
    ['TOKEN_LIFETIME_HOURS', '0'],
    ['TOKEN_LIFETIME_HOURS', '721'],
    ['RATE_LIMIT_PER_MINUTE', '0'],
    ['RATE_LIMIT_PER_MINUTE', 'none'],
    ['REDIS_URL', 'http://:hunter2@127.0.0.1:6379'],
    ['STRIPE_SECRET_KEY', 'hunter2'],
    ['STRIPE_WEBHOOK_SECRET', 'hunter2'],
    ['PUBLIC_URL', 'api.example.com'],
    ['PUBLIC_URL', 'ftp://api.example.com'],
    ['PUBLIC_URL', 'https://api.example.com/?a=1'],
    ['PUBLIC_URL', 'https://api.example.com/#a'],
    ['PUBLIC_URL', 'https://hunter2@api.example.com'],
    ['TRUST_PROXY', '0.0.0.0/0'],
    ['ALLOWED_ORIGINS', '*'],
    ['ALLOWED_ORIGINS', 'https://app.example.com/'],
    ['ALLOWED_ORIGINS', 'app.example.com'],
    ['ALLOWED_ORIGINS', 'null'],
    ['TRUST_PROXY', '::/0'],
    ['TRUST_PROXY', 'perhaps'],
    ['LOG_LEVEL', 'loud'],
    ['LOG_LEVEL', 'INFO'],
  ])('stop the start with one line that begins with the name, and tells no secret: %s=%s', (name, value) => {
    const line = refusalOf({ [name]: value });

    expect(line).toMatch(new RegExp(`^${name}: .+\\.$`));
    expect(line).not.toMatch(/hunter2|\n/);
  });
});

describe('PORT', () => {
  it.each([
    ['0', 0],
    ['65535', 65_535],
  ])('may be %s', (value, port) => {
    expect(readSettings({ PORT: value }).PORT).toBe(port);
  });
});

describe('DATABASE_URL', () => {
  it.each(['postgresql://127.0.0.1/deckhand', 'postgres://127.0.0.1/deckhand'])('may be %s', (value) => {
    expect(readSettings({ DATABASE_URL: value, JWT_SECRET: SECRET }).DATABASE_URL).toBe(value);
  });

  it('is refused without JWT_SECRET, which every node must have alike', () => {
    expect(refusalOf({ DATABASE_URL })).toMatch(/^JWT_SECRET: .*DATABASE_URL.*\.$/);
    expect(refusalOf({ DATABASE_URL, JWT_SECRET: '' })).toMatch(/^JWT_SECRET: /);
    expect(refusalOf({ DATABASE_URL })).not.toContain('hunter2');
  });
});

describe('TRUST_PROXY', () => {
  it.each(['off', 'OFF', 'false', 'no', '0'])('is off as %s', (value) => {
    expect(readSettings({ TRUST_PROXY: value }).TRUST_PROXY).toBe(false);
  });

  it.each(['on', 'On', 'true', 'yes'])('is on as %s', (value) => {
    expect(readSettings({ TRUST_PROXY: value }).TRUST_PROXY).toBe(true);
  });

  it.each([
    ['10.0.0.1', ['10.0.0.1']],
    ['10.0.0.0/8,::1', ['10.0.0.0/8', '::1']],
    ['10.0.0.1, fd00::/8', ['10.0.0.1', 'fd00::/8']],
  ])('is the addresses %s', (value, addresses) => {
    expect(readSettings({ TRUST_PROXY: value }).TRUST_PROXY).toEqual(addresses);
  });

  // A number of hops, or a host's name, would be believed by the wrong people.
  it.each(['1', '2', 'loopback', 'proxy.example.com', '10.0.0.1,', '10.0.0.256', 'on,10.0.0.1'])(
    'is refused as %s',
    (value) => {
      expect(refusalOf({ TRUST_PROXY: value })).toMatch(/^TRUST_PROXY: /);
    },
  );
});

describe('PUBLIC_URL', () => {
  it.each([
    ['https://api.example.com/', 'https://api.example.com'],
    ['https://api.example.com//', 'https://api.example.com'],
    ['http://127.0.0.1:3000/deckhand/', 'http://127.0.0.1:3000/deckhand'],
  ])('loses the slashes at the end of %s', (value, url) => {
    expect(readSettings({ PUBLIC_URL: value }).PUBLIC_URL).toBe(url);
  });
});

describe('The settings of Stripe', () => {
  const stripe = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };

  it('are taken together', () => {
    expect(readSettings(stripe)).toMatchObject(stripe);
  });

  it.each(['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET'] as const)('are refused with %s alone', (name) => {
    const line = refusalOf({ [name]: stripe[name] });

    expect(line).toMatch(/^STRIPE_\w+: must be set together with STRIPE_\w+\.$/);
    expect(line).not.toContain(stripe[name]);
  });
});

/** The line that readSettings refuses an environment with. */
function refusalOf(environment: Record<string, string>): string {
  try {
    readSettings(environment);
  } catch (error) {
    if (isStartFailure(error)) return error.message;
    throw error;
  }
  throw new Error('The settings were not refused.');
}
