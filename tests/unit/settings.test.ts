import { describe, expect, it } from 'vitest';
import { misspeltSettings, readSettings } from '../../server/runtime/env.ts';
import { isStartFailure } from '../../server/runtime/startFailure.ts';

const DATABASE_URL = 'postgresql://deckhand:hunter2@127.0.0.1:5432/deckhand';
const SECRET = 'hunter2 hunter2 hunter2 hunter2 ';

const DEFAULTS = {
  HOST: '127.0.0.1',
  PORT: 3000,
  DATABASE_POOL_SIZE: 10,
  PREPARED_STATEMENTS: true,
  DATA_DIR: './data',
  JWT_PREVIOUS_SECRETS: [],
  TOKEN_LIFETIME_HOURS: 12,
  RATE_LIMIT_PER_MINUTE: 600,
  TRUST_PROXY: false,
  OTEL_SDK_DISABLED: false,
  OTEL_TRACES_SAMPLER: 'parentbased_always_on',
  OTEL_TRACES_SAMPLER_ARG: 1,
  STOP_PAUSE_SECONDS: 0,
  ALLOWED_ORIGINS: [],
  LOG_LEVEL: 'info',
};

const EVERY_SETTING = {
  HOST: '0.0.0.0',
  PORT: '8080',
  DATABASE_URL,
  DATABASE_POOL_SIZE: '20',
  PREPARED_STATEMENTS: 'off',
  DATA_DIR: '/var/lib/deckhand',
  DEMO_DATA: 'off',
  JWT_SECRET: SECRET,
  JWT_PREVIOUS_SECRETS: `${'a'.repeat(32)}, ${'b'.repeat(32)}`,
  TOKEN_LIFETIME_HOURS: '720',
  RATE_LIMIT_PER_MINUTE: '1000',
  REDIS_URL: 'rediss://127.0.0.1:6380',
  STRIPE_SECRET_KEY: 'sk_test_1',
  STRIPE_WEBHOOK_SECRET: 'whsec_1',
  TEST_CHECKOUT: 'off',
  PUBLIC_URL: 'https://api.example.com',
  METRICS_TOKEN: 'a-token-for-tests',
  TRUST_PROXY: '2',
  ALLOWED_ORIGINS: 'https://app.example.com, http://localhost:5173',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector.example.com/v1/traces',
  OTEL_TRACES_EXPORTER: 'otlp',
  OTEL_SDK_DISABLED: 'TRUE',
  OTEL_TRACES_SAMPLER: 'traceidratio',
  OTEL_TRACES_SAMPLER_ARG: '0.25',
  STOP_PAUSE_SECONDS: '5',
  LOG_LEVEL: 'debug',
};

describe('settings', () => {
  it('have the documented defaults', () => {
    expect(readSettings({})).toEqual(DEFAULTS);
  });

  it('are parsed when everything is set', () => {
    expect(readSettings(EVERY_SETTING)).toEqual({
      ...EVERY_SETTING,
      PORT: 8080,
      DATABASE_POOL_SIZE: 20,
      PREPARED_STATEMENTS: false,
      DEMO_DATA: false,
      JWT_PREVIOUS_SECRETS: ['a'.repeat(32), 'b'.repeat(32)],
      TOKEN_LIFETIME_HOURS: 720,
      RATE_LIMIT_PER_MINUTE: 1000,
      TRUST_PROXY: 2,
      OTEL_SDK_DISABLED: true,
      OTEL_TRACES_SAMPLER_ARG: 0.25,
      STOP_PAUSE_SECONDS: 5,
      TEST_CHECKOUT: false,
      ALLOWED_ORIGINS: ['https://app.example.com', 'http://localhost:5173'],
    });
  });

  it('have their defaults when they are empty', () => {
    const empty = Object.fromEntries(Object.keys(EVERY_SETTING).map((name) => [name, '']));

    expect(readSettings(empty)).toEqual(DEFAULTS);
  });

  it('ignore the rest of the environment', () => {
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
    ['PREPARED_STATEMENTS', 'maybe'],
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
    ['STRIPE_SECRET_KEY', 'pk_hunter2'],
    ['STRIPE_WEBHOOK_SECRET', 'hunter2'],
    ['TEST_CHECKOUT', 'perhaps'],
    ['TEST_CHECKOUT', 'ON'],
    ['DEMO_DATA', 'yes'],
    ['DEMO_DATA', 'ON'],
    ['METRICS_TOKEN', 'hunter2'],
    ['METRICS_TOKEN', 'hunter2 hunter2 hunter2'],
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
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'hunter2:4317'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'grpc://hunter2:4317'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.1'],
    ['OTEL_TRACES_SAMPLER_ARG', '-1'],
    ['OTEL_TRACES_SAMPLER_ARG', 'half'],
    ['STOP_PAUSE_SECONDS', '301'],
    ['LOG_LEVEL', 'loud'],
    ['LOG_LEVEL', 'INFO'],
  ])('fail with a line that begins with the name and shows no secret: %s=%s', (name, value) => {
    const lines = refusalOf({ [name]: value });

    expect(lines.match(new RegExp(`^${name}: .+\\.$`, 'gm'))).toHaveLength(1);
    expect(lines).not.toContain('hunter2');
  });

  it('fail with a line for each that is wrong, also for rules between them', () => {
    const lines = refusalOf({ PORT: 'abc', LOG_LEVEL: 'loud', DATABASE_URL, STRIPE_SECRET_KEY: 'hunter2' }).split('\n');

    expect(lines).toEqual([
      expect.stringMatching(/^PORT: must be a whole number/),
      expect.stringMatching(/^STRIPE_SECRET_KEY: must start with/),
      expect.stringMatching(/^LOG_LEVEL: must be one of/),
      expect.stringMatching(/^JWT_SECRET: must be set/),
      expect.stringMatching(/^STRIPE_WEBHOOK_SECRET: must be set together/),
    ]);
  });
});

describe('a misspelt setting', () => {
  it.each([
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['database_url', 'DATABASE_URL'],
    ['JWT_SECRETS', 'JWT_SECRET'],
    ['DECKHAND_PORT', 'PORT'],
    ['DECKHAND_LOGLEVEL', 'LOG_LEVEL'],
  ])('is hinted at: %s', (name, meant) => {
    expect(misspeltSettings({ [name]: 'hunter2' })).toEqual([`${name} is not a setting. Did you mean ${meant}?`]);
  });

  it('is hinted at where settings are wrong, since it may be why', () => {
    expect(refusalOf({ DATABASE_URL, JWT_SECRETS: SECRET })).toMatch(/^JWT_SECRET: .*\nJWT_SECRETS is not a setting/);
  });

  it.each([
    ...[
      'HOME',
      'PATH',
      'HOSTS',
      'HOSTNAME',
      'PORTS',
      'POST',
      'PGHOST',
      'PGDATABASE',
      'LANG',
      'NODE_ENV',
      'DECKHAND_URL',
    ],
    ...[
      'DECKHAND_KEY',
      'DECKHAND_ALLOW_HTTP',
      'OTEL_LOGS_EXPORTER',
      'OTEL_EXPORTER_OTLP_HEADERS',
      'OTEL_SERVICE_NAME',
      ...Object.keys(EVERY_SETTING),
    ],
  ])('is not found in %s', (name) => {
    expect(misspeltSettings({ [name]: 'on' })).toEqual([]);
  });
});

describe('PORT', () => {
  it.each([
    ['0', 0],
    ['65535', 65_535],
  ])('can be %s', (value, port) => {
    expect(readSettings({ PORT: value }).PORT).toBe(port);
  });
});

describe('DATABASE_URL', () => {
  it.each(['postgresql://127.0.0.1/deckhand', 'postgres://127.0.0.1/deckhand'])('can be %s', (value) => {
    expect(readSettings({ DATABASE_URL: value, JWT_SECRET: SECRET }).DATABASE_URL).toBe(value);
  });

  it('is refused without JWT_SECRET, which must be the same on every node', () => {
    expect(refusalOf({ DATABASE_URL })).toMatch(/^JWT_SECRET: .*DATABASE_URL.*\.$/);
    expect(refusalOf({ DATABASE_URL, JWT_SECRET: '' })).toMatch(/^JWT_SECRET: /);
    expect(refusalOf({ DATABASE_URL })).not.toContain('hunter2');
  });
});

describe('DEMO_DATA', () => {
  it('can not be on with DATABASE_URL, where only a command adds demo data', () => {
    const line = refusalOf({ DATABASE_URL, JWT_SECRET: SECRET, DEMO_DATA: 'on' });

    expect(line).toMatch(/^DEMO_DATA: .*npx deckhand demo.*\.$/);
  });
});

describe('TRUST_PROXY', () => {
  it.each(['off', 'OFF', 'false', 'no', '0'])('is off for %s', (value) => {
    expect(readSettings({ TRUST_PROXY: value }).TRUST_PROXY).toBe(false);
  });

  it('can be the number of proxies', () => {
    expect(readSettings({ TRUST_PROXY: '1' }).TRUST_PROXY).toBe(1);
  });

  it.each([
    ['10.0.0.1', ['10.0.0.1']],
    ['10.0.0.0/8,::1', ['10.0.0.0/8', '::1']],
    ['10.0.0.1, fd00::/8', ['10.0.0.1', 'fd00::/8']],
  ])('can be the addresses %s', (value, addresses) => {
    expect(readSettings({ TRUST_PROXY: value }).TRUST_PROXY).toEqual(addresses);
  });

  // "on" would trust what the caller sends, and so would a host name that the caller can choose.
  it.each(['on', 'true', '-1', '10', '1.5', 'loopback', 'proxy.example.com', '10.0.0.1,', '10.0.0.256', 'on,10.0.0.1'])(
    'is refused for %s',
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
  ])('loses trailing slashes: %s', (value, url) => {
    expect(readSettings({ PUBLIC_URL: value }).PUBLIC_URL).toBe(url);
  });
});

describe('PUBLIC_URL of a service that listens on every address', () => {
  const stripe = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };

  it.each(['0.0.0.0', '::', '0:0:0:0:0:0:0:0'])('is required with Stripe, which redirects people to it: %s', (HOST) => {
    expect(refusalOf({ ...stripe, HOST })).toMatch(/^PUBLIC_URL: must be set when HOST is a wildcard/);
    expect(readSettings({ ...stripe, HOST, PUBLIC_URL: 'https://api.example.com' }).HOST).toBe(HOST);
  });

  it('is optional without Stripe', () => {
    expect(readSettings({ HOST: '0.0.0.0' }).PUBLIC_URL).toBeUndefined();
  });
});

describe('the settings of Stripe', () => {
  const stripe = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };

  it('are accepted together', () => {
    expect(readSettings(stripe)).toMatchObject(stripe);
  });

  it('accept a restricted key', () => {
    const STRIPE_SECRET_KEY = 'rk_live_1';

    expect(readSettings({ ...stripe, STRIPE_SECRET_KEY }).STRIPE_SECRET_KEY).toBe(STRIPE_SECRET_KEY);
  });

  it('are refused together with the test checkout, where nobody has to pay', () => {
    const line = refusalOf({ ...stripe, TEST_CHECKOUT: 'on' });

    expect(line).toMatch(/^TEST_CHECKOUT: .*STRIPE_SECRET_KEY.*\.$/);
    expect(line).not.toMatch(/sk_test_1|whsec_1/);
    expect(readSettings({ ...stripe, TEST_CHECKOUT: 'off' }).TEST_CHECKOUT).toBe(false);
  });

  it.each(['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET'] as const)('are refused with only %s', (name) => {
    const line = refusalOf({ [name]: stripe[name] });

    expect(line).toMatch(/^STRIPE_\w+: must be set together with STRIPE_\w+\.$/);
    expect(line).not.toContain(stripe[name]);
  });
});

/** The error message of readSettings. */
function refusalOf(environment: Record<string, string>): string {
  try {
    readSettings(environment);
  } catch (error) {
    if (isStartFailure(error)) return error.message;
    throw error;
  }
  throw new Error('The settings were not refused.');
}
