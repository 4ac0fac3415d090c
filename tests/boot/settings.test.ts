import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { misspeltSettings, readSettings } from '../../server/runtime/env.ts';
import { isStartFailure } from '../../server/runtime/startFailure.ts';

const DATABASE_URL = 'postgresql://deckhand:hunter2@127.0.0.1:5432/deckhand';
const REPLICAS = ['postgresql://a:5432/deckhand', 'postgresql://deckhand:hunter2@b/deckhand?sslmode=require'];
const SECRET = 'hunter2 hunter2 hunter2 hunter2 ';
const STRIPE = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };

const ISSUER = {
  ...{ name: 'company', title: 'Company', issuer: 'https://id.example', client_id: 'a', client_secret: 'hunter2' },
};
const WRONG_ISSUERS = [
  ...[{ name: 'Hunter2!' }, { issuer: 'http://hunter2.example' }, { issuer: 'https://hunter2@id.example' }],
  ...[{ client_secret: ['hunter2'] }, { scopes: 'email' }, { session_hours: 13 }, { an_unknown_field: 'hunter2' }],
  { groups_claim: 'groups', groups: { hunter: { project_id: 1, role: 'owner' } } },
  { groups: { hunter: { project_id: 1, role: 'member' } } },
];

const DEFAULTS = {
  ...{ HOST: '127.0.0.1', PORT: 3000, DATABASE_POOL_SIZE: 10, PREPARED_STATEMENTS: true, DATA_DIR: './data' },
  ...{ JWT_PREVIOUS_SECRETS: [], TOKEN_LIFETIME_HOURS: 12, RATE_LIMIT_PER_MINUTE: 600, TRUST_PROXY: false },
  ...{ OTEL_SDK_DISABLED: false, OTEL_TRACES_SAMPLER: 'parentbased_always_on', OTEL_TRACES_SAMPLER_ARG: 1 },
  ...{ TEMPLATE_RUNS_KEPT_DAYS: 90, CHECKOUTS_KEPT_DAYS: 730, EVENTS_KEPT_DAYS: 30, AUDIT_KEPT_DAYS: 365 },
  ...{ SSO_ISSUERS: [] },
  ...{ WEBHOOKS: true, WEBHOOK_ALLOWED_HOSTS: [], IDENTITY_ALLOWED_HOSTS: [] },
  ...{ STOP_PAUSE_SECONDS: 0, WORKERS: 1, ALLOWED_ORIGINS: [], DATABASE_REPLICA_URLS: [], LOG_LEVEL: 'info' },
};

/** Each setting as written and as read; undefined if both are the same. */
const EVERY_SETTING: [string, string, unknown?][] = [
  ['HOST', '0.0.0.0'],
  ['PORT', '8080', 8080],
  ['DATABASE_URL', DATABASE_URL.replace('postgresql', 'postgres')],
  ['DATABASE_REPLICA_URLS', REPLICAS.join(', '), REPLICAS],
  ['DATABASE_POOL_SIZE', '20', 20],
  ['PREPARED_STATEMENTS', 'off', false],
  ['DATA_DIR', '/var/lib/deckhand'],
  ['DEMO_DATA', 'off', false],
  ['JWT_SECRET', SECRET],
  ['JWT_PREVIOUS_SECRETS', `${'a'.repeat(32)}, ${'b'.repeat(32)}`, ['a'.repeat(32), 'b'.repeat(32)]],
  ['TOKEN_LIFETIME_HOURS', '720', 720],
  ['API_KEYS_MAX_DAYS', '90', 90],
  ['RATE_LIMIT_PER_MINUTE', '1000', 1000],
  ['REDIS_URL', 'rediss://127.0.0.1:6380'],
  ['STRIPE_SECRET_KEY', 'rk_live_1'],
  ['STRIPE_WEBHOOK_SECRET', 'whsec_1'],
  ['TEST_CHECKOUT', 'off', false],
  ['PUBLIC_URL', 'https://api.example.com//', 'https://api.example.com'],
  ['SSO_ISSUERS', '[]', []],
  ['METRICS_TOKEN', 'a-token-for-tests'],
  ['TRUST_PROXY', '2', 2],
  ['ALLOWED_ORIGINS', 'https://a.example.com, http://b:5173', ['https://a.example.com', 'http://b:5173']],
  ['TEMPLATE_RUNS_KEPT_DAYS', '30', 30],
  ['CHECKOUTS_KEPT_DAYS', '90', 90],
  ['EVENTS_KEPT_DAYS', '7', 7],
  ['AUDIT_KEPT_DAYS', '30', 30],
  ['WEBHOOKS', 'off', false],
  [
    'WEBHOOK_ALLOWED_HOSTS',
    'CRM.internal, 10.0.0.7:8080, [fd00::7]:80, 127.0.0.1:*',
    ['crm.internal', '10.0.0.7:8080', '[fd00::7]:80', '127.0.0.1:*'],
  ],
  ['IDENTITY_ALLOWED_HOSTS', 'keycloak.internal:8443', ['keycloak.internal:8443']],
  ['DELETED_ROWS_KEPT_DAYS', '365', 365],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:4318'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'https://collector.example.com/v1/traces'],
  ['OTEL_TRACES_EXPORTER', 'otlp'],
  ['OTEL_SDK_DISABLED', 'TRUE', true],
  ['OTEL_TRACES_SAMPLER', 'traceidratio'],
  ['OTEL_TRACES_SAMPLER_ARG', '0.25', 0.25],
  ['STOP_PAUSE_SECONDS', '5', 5],
  ['WORKERS', '4', 4],
  ['LOG_LEVEL', 'debug'],
];
const names = EVERY_SETTING.map(([name]) => name);

describe('settings', () => {
  it('have the documented defaults, also when they are empty, and ignore the rest of the environment', () => {
    const empty = Object.fromEntries(names.map((name) => [name, '']));

    expect(readSettings({})).toEqual(DEFAULTS);
    expect(readSettings({ ...empty, HOME: '/root', PORTS: 'abc' })).toEqual(DEFAULTS);
  });

  it('are parsed when everything is set', () => {
    const written = Object.fromEntries(EVERY_SETTING);
    const read = EVERY_SETTING.map(([name, value, parsed = value]) => [name, parsed]);

    expect(readSettings(written)).toEqual(Object.fromEntries(read));
  });

  it.each<[string, string, unknown]>([
    ['PORT', '0', 0],
    ['PORT', '65535', 65_535],
    ['PUBLIC_URL', 'http://127.0.0.1:3000/deckhand/', 'http://127.0.0.1:3000/deckhand'],
    ...['off', 'OFF', 'false', 'no', '0'].map((value): [string, string, unknown] => ['TRUST_PROXY', value, false]),
    ['TRUST_PROXY', '10.0.0.0/8,::1', ['10.0.0.0/8', '::1']],
    ['TRUST_PROXY', '10.0.0.1, fd00::/8', ['10.0.0.1', 'fd00::/8']],
  ])('may be %s=%s', (name, value, read) => {
    expect(readSettings({ [name]: value })).toEqual({ ...DEFAULTS, [name]: read });
  });

  it.each<[string, string[]]>([
    ['HOST', ['   ']],
    ['PORT', ['abc', '-1', '65536', '80.5', '1e3', '99999999999999999999']],
    ['DATABASE_URL', ['hunter2', 'mysql://deckhand:hunter2@127.0.0.1/deckhand', DATABASE_URL.replace('5432', '99999')]],
    ['DATABASE_URL', ['postgresql://deckhand:hunter2@127.0.0.1:5432', DATABASE_URL.replace('@', '%@')]],
    ['DATABASE_URL', ['postgresql://deckhand:hunter2@h1:5432,/deckhand', 'postgresql://deckhand:hunter2@,h2/deckhand']],
    ['DATABASE_URL', ['postgresql://deckhand:hunter2@h1:1,h2:99999/deckhand', 'postgresql://deckhand:hunter2@h1,h2']],
    ['DATABASE_URL', [`${DATABASE_URL}?host=h1,h2`, `${DATABASE_URL}?target_session_attrs=hunter2`]],
    [
      'DATABASE_REPLICA_URLS',
      ['hunter2', `${DATABASE_URL},`, `${DATABASE_URL} ${DATABASE_URL}`, 'postgresql://hunter2'],
    ],
    ['DATABASE_REPLICA_URLS', [`${DATABASE_URL},${DATABASE_URL}?sslmode=require`]],
    ['DATABASE_POOL_SIZE', ['1', '1001']],
    ['PREPARED_STATEMENTS', ['maybe']],
    ['DATA_DIR', ['   ']],
    ['JWT_SECRET', ['hunter2', SECRET.slice(1)]],
    ['JWT_PREVIOUS_SECRETS', ['hunter2', `${SECRET},hunter2`]],
    ['TOKEN_LIFETIME_HOURS', ['0', '721']],
    ['RATE_LIMIT_PER_MINUTE', ['0', 'none']],
    ['REDIS_URL', ['http://:hunter2@127.0.0.1:6379']],
    ['STRIPE_SECRET_KEY', ['hunter2', 'pk_hunter2']],
    ['WEBHOOK_ALLOWED_HOSTS', ['crm.internal:80:*', ':*', '*', 'crm.internal:65536', '[fd00::7]:0']],
    ['IDENTITY_ALLOWED_HOSTS', ['crm.internal:*', 'crm.internal:70000']],
    ['MAIL_FROM', ['a@hunter2.test, b@example.com', 'A <a@hunter2.test>, B <b@example.com>', 'A <a@example.com']],
    ['SMTP_URL', ['smtp://hunter2@mail.example.com?requireTls=true', 'smtp://mail.example.com?requireTLS=true&pool=1']],
    ['STRIPE_WEBHOOK_SECRET', ['hunter2']],
    [
      'SSO_ISSUERS',
      ['hunter2', '{}', '[{}]', ...WRONG_ISSUERS.map((wrong) => JSON.stringify([{ ...ISSUER, ...wrong }]))],
    ],
    ['SSO_ISSUERS', [JSON.stringify([ISSUER, ISSUER])]],
    ['TEST_CHECKOUT', ['perhaps', 'ON']],
    ['DEMO_DATA', ['yes', 'ON']],
    ['METRICS_TOKEN', ['hunter2', 'hunter2 hunter2 hunter2']],
    ['PUBLIC_URL', ['api.example.com', 'ftp://api.example.com', 'https://hunter2@api.example.com']],
    ['PUBLIC_URL', ['https://api.example.com/?a=1', 'https://api.example.com/#a']],
    // "on" would trust what the caller sends, and so would a host name that the caller can choose.
    ['TRUST_PROXY', ['on', 'true', 'perhaps', '-1', '10', '1.5', 'loopback', 'proxy.example.com', '0.0.0.0/0', '::/0']],
    ['TRUST_PROXY', ['10.0.0.1,', '10.0.0.256', 'on,10.0.0.1']],
    ['ALLOWED_ORIGINS', ['*', 'https://app.example.com/', 'app.example.com', 'null']],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', ['hunter2:4317']],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ['grpc://hunter2:4317']],
    ['OTEL_TRACES_SAMPLER', ['sometimes']],
    ['OTEL_TRACES_SAMPLER_ARG', ['1.1', '-1', 'half']],
    ['STOP_PAUSE_SECONDS', ['301']],
    ['WORKERS', ['0', '-1', '129', '1.5', 'two', 'AUTO', '2']],
    ['LOG_LEVEL', ['loud', 'INFO']],
  ])('fail with a line that begins with the name and shows no secret: %s=%j', (name, values) => {
    for (const value of values) {
      const lines = refusalOf({ [name]: value });
      expect(lines.match(new RegExp(`^${name}: .+\\.$`, 'gm')), value).toHaveLength(1);
      expect(lines).not.toContain('hunter2');
    }
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

  it.each<[string, Record<string, string>, RegExp]>([
    ['DATABASE_URL without JWT_SECRET, the same on every node', { JWT_SECRET: '' }, /^JWT_SECRET: .*DATABASE_URL.*\.$/],
    ['demo data on a server', { JWT_SECRET: SECRET, DEMO_DATA: 'on' }, /^DEMO_DATA: .*npx deckhand demo.*\.$/],
  ])('refuse %s', (_, more, line) => {
    expect(refusalOf({ DATABASE_URL, ...more })).toMatch(line);
    expect(refusalOf({ DATABASE_URL, ...more })).not.toContain('hunter2');
  });

  it('name replicas only together with the primary', () => {
    const lines = refusalOf({ DATABASE_REPLICA_URLS: DATABASE_URL });

    expect(lines).toMatch(/^DATABASE_REPLICA_URLS: is only for a PostgreSQL server: set DATABASE_URL .*\.$/);
    expect(lines).not.toContain('hunter2');
  });

  it('name one server in each URL of a replica', () => {
    const lines = refusalOf({
      DATABASE_URL,
      JWT_SECRET: SECRET,
      DATABASE_REPLICA_URLS: 'postgresql://a:hunter2@h1,h2/name',
    });

    expect(lines).toMatch(/^DATABASE_REPLICA_URLS: must be URLs with one server each, as in .*\.$/);
    expect(lines).not.toContain('hunter2');
  });

  it('of workers: each has 10 connections to the database, or its part of DATABASE_POOL_SIZE', () => {
    const onServer = (more: Record<string, string>) => readSettings({ DATABASE_URL, JWT_SECRET: SECRET, ...more });

    expect(onServer({ WORKERS: '3' })).toMatchObject({ WORKERS: 3, DATABASE_POOL_SIZE: 30 });
    expect(onServer({ WORKERS: 'auto' }).WORKERS).toBe(availableParallelism());
    expect(onServer({ WORKERS: '3', DATABASE_POOL_SIZE: '6' })).toMatchObject({ DATABASE_POOL_SIZE: 6 });
    expect(refusalOf({ DATABASE_URL, JWT_SECRET: SECRET, WORKERS: '3', DATABASE_POOL_SIZE: '5' })).toBe(
      'DATABASE_POOL_SIZE: must be at least 2 for each of the WORKERS, which share it.',
    );
    expect(refusalOf({ WORKERS: '2' })).toBe(
      'WORKERS: must be 1 without DATABASE_URL: only one process can use the embedded database.',
    );
  });

  it('of Stripe belong together, and exclude the test checkout, where nobody has to pay', () => {
    for (const [name, value] of Object.entries(STRIPE)) {
      expect(refusalOf({ [name]: value })).toMatch(/^STRIPE_\w+: must be set together with STRIPE_\w+\.$/);
    }
    expect(refusalOf({ ...STRIPE, TEST_CHECKOUT: 'on' })).toMatch(/^TEST_CHECKOUT: .*STRIPE_SECRET_KEY.*\.$/);
    expect(refusalOf({ ...STRIPE, TEST_CHECKOUT: 'on' })).not.toMatch(/sk_test_1|whsec_1/);
    expect(readSettings(STRIPE)).toMatchObject(STRIPE);
  });

  it.each(['0.0.0.0', '::', '0:0:0:0:0:0:0:0'])('need PUBLIC_URL on %s with Stripe, which redirects there', (HOST) => {
    expect(refusalOf({ ...STRIPE, HOST })).toMatch(/^PUBLIC_URL: must be set when HOST is a wildcard/);
    expect(readSettings({ ...STRIPE, HOST, PUBLIC_URL: 'https://api.example.com' }).HOST).toBe(HOST);
    expect(readSettings({ HOST }).PUBLIC_URL).toBeUndefined();
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

  it('is not found in settings and names of others', () => {
    const others =
      'HOME PATH HOSTS HOSTNAME PORTS POST PGHOST PGDATABASE LANG NODE_ENV DECKHAND_URL DECKHAND_KEY DECKHAND_ALLOW_HTTP';
    const traces = 'OTEL_LOGS_EXPORTER OTEL_EXPORTER_OTLP_HEADERS OTEL_SERVICE_NAME';

    for (const name of [...others.split(' '), ...traces.split(' '), ...names]) {
      expect(misspeltSettings({ [name]: 'on' })).toEqual([]);
    }
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
