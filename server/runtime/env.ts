import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { hasClearHosts, parseDatabaseUrl, TARGETS, targetOf } from './databaseUrl.ts';
import { isForThisMachine, isLoopback, isWildcard } from './host.ts';
import { nearestName } from './nearestName.ts';
import { ssoIssuers } from './ssoIssuers.ts';
import { startFailure } from './startFailure.ts';

export type Settings = z.output<typeof Settings>;

/** The settings as texts. */
export type Environment = z.input<typeof Settings>;

export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const result = Settings.safeParse(given);
  if (result.success) return result.data;

  const byName = Map.groupBy(result.error.issues, ({ path }) => String(path[0]));
  const lines = [...byName].map(([name, [first]]) => `${name}: ${first?.message}.`);
  throw startFailure([...lines, ...misspeltSettings(environment)].join('\n'));
}

/** A hint for each misspelt setting, such as `DATABSE_URL` or `DECKHAND_PORT`. */
export function misspeltSettings(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment).flatMap((name) => {
    const suggestion = SETTINGS.includes(name) ? undefined : similarSetting(name);
    return suggestion ? `${name} is not a setting. Did you mean ${suggestion}?` : [];
  });
}

function similarSetting(name: string): string | undefined {
  const bare = name.replace(/^DECKHAND_/, '');
  if (SETTINGS.includes(bare)) return bare;
  // Short names resemble many unrelated variables.
  const longNames = SETTINGS.filter((setting) => setting.length > 6);
  return nearestName(bare, longNames, 2);
}

/** The message never shows the value, which may be a secret. */
const url = (protocols: RegExp, example: string) =>
  z.url({ protocol: protocols, error: `must be an address such as ${example}` });

function isEncoded(value: string): boolean {
  try {
    return decodeURIComponent(value) !== '';
  } catch {
    return false;
  }
}

function isPlainAddress(value: string): boolean {
  return URL.parse(value)?.username === '' && !/[?#]/.test(value);
}

/** As browsers send it: without a path or trailing slash. */
function isOrigin(value: string): boolean {
  return /^https?:/.test(value) && URL.parse(value)?.origin === value;
}

const onOff = z.enum(['on', 'off'], { error: 'must be on or off' }).transform((value) => value === 'on');

const list = z.string().transform((value) => value.split(',').map((part) => part.trim()));

/** Others are ignored by the mail client: with a misspelled one, mails would go out without encryption. */
const SMTP_OPTIONS = ['requireTLS', 'ignoreTLS', 'name', 'localAddress', 'tls.rejectUnauthorized', 'tls.servername'];

/** A name, an IPv4 address, or an IPv6 address in brackets. */
const HOST_AND_PORT = /^(\[[\da-f:.]+\]|[a-z\d]([a-z\d._-]*[a-z\d])?)(:(\d{1,5}))?$/;
const isHostAndPort = (host: string) => {
  const port = Number(HOST_AND_PORT.exec(host)?.at(-1) ?? 1);
  return HOST_AND_PORT.test(host) && port >= 1 && port <= 65_535;
};

const hostList = (isHost: (host: string) => boolean, more = '') =>
  list
    .transform((hosts) => hosts.map((host) => host.toLowerCase()))
    .refine((hosts) => hosts.every(isHost), {
      error: `must be names of hosts such as crm.internal or crm.internal:8080${more}, separated by commas`,
    })
    .default([]);

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, { error: `must be a whole number from ${least} to ${most}` })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error: `must be a whole number from ${least} to ${most}` });

const MOST_WORKERS = 128;

const workers = z.string().transform((value, context) => {
  if (value === 'auto') return Math.min(availableParallelism(), MOST_WORKERS);
  if (/^\d{1,3}$/.test(value) && Number(value) >= 1 && Number(value) <= MOST_WORKERS) return Number(value);
  context.addIssue(`must be auto, or a whole number from 1 to ${MOST_WORKERS}`);
  return z.NEVER;
});

/** Calls need two: one call that waits for a lock must not keep others from signing in. */
const LEAST_CONNECTIONS = 2;
const CONNECTIONS_OF_A_PROCESS = 10;

const notBlank = z.string().trim().min(1, { error: 'must not be blank' });

export const SHORTEST_SECRET = 32;

const signingSecret = z.string().min(SHORTEST_SECRET, { error: `must be at least ${SHORTEST_SECRET} characters long` });

/** There is no "on", which would trust what the caller sends. */
const trustedProxies = z.string().transform((value, context) => {
  if (/^(off|false|no|0)$/i.test(value)) return false;
  if (/^[1-9]$/.test(value)) return Number(value);
  const addresses = value.split(',').map((address) => address.trim());
  if (addresses.every((address) => ADDRESS.safeParse(address).success)) return addresses;
  context.addIssue('must be off, the number of proxies (1 to 9), or their addresses or networks, separated by commas');
  return z.NEVER;
});
const ADDRESS = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]).refine((address) => !address.endsWith('/0'));

const collector = url(/^https?$/, 'http://127.0.0.1:4318');
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

const EXAMPLE_SERVER = 'postgresql://user:password@host:5432/name';
const serverUrl = url(/^postgres(ql)?$/, EXAMPLE_SERVER)
  .refine((value) => (URL.parse(value)?.pathname.length ?? 0) > 1, { error: 'must end in the name of a database' })
  .refine(isEncoded, { error: 'must have special characters percent-encoded, as in %25 for %' });

const databaseUrl = z
  .string()
  .superRefine((value, context) => {
    for (const { message } of serverErrors(value)) context.addIssue(message);
  })
  .refine(hasClearHosts, {
    error: 'must name several hosts as in postgresql://user:password@h1:5432,h2:5432/name',
  })
  .refine((value) => TARGETS.includes(targetOf(value) ?? 'any'), {
    error: `must have one of ${TARGETS.join(', ')} as target_session_attrs`,
  });

/** Each host of the URL must make a valid URL of its own. */
const serverErrors = (value: string) =>
  parseDatabaseUrl(value).urls.flatMap((one) => serverUrl.safeParse(one).error?.issues ?? []);

const Fields = z.object({
  HOST: notBlank.default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(3000),
  DATABASE_URL: databaseUrl.optional(),
  DATABASE_REPLICA_URLS: z
    .string()
    .refine((value) => value.split(',').every((address) => address.includes('://')), {
      error: `must be URLs with one server each, as in ${EXAMPLE_SERVER},${EXAMPLE_SERVER.replace('host', 'host2')}`,
    })
    .pipe(list)
    .pipe(z.array(serverUrl))
    .refine((addresses) => new Set(addresses.map((address) => URL.parse(address)?.host)).size === addresses.length, {
      error: 'must name each server once',
    })
    .default([]),
  DATABASE_POOL_SIZE: wholeNumber(LEAST_CONNECTIONS, 1000).optional(),
  PREPARED_STATEMENTS: onOff.prefault('on'),
  DATA_DIR: notBlank.default('./data'),
  ERASURES_FILE: notBlank.optional(),
  DEMO_DATA: onOff.optional(),
  JWT_SECRET: signingSecret.optional(),
  JWT_PREVIOUS_SECRETS: list.pipe(z.array(signingSecret)).default([]),
  TOKEN_LIFETIME_HOURS: wholeNumber(1, 720).default(12),
  API_KEYS_MAX_DAYS: wholeNumber(1, 36_500).optional(),
  RATE_LIMIT_PER_MINUTE: wholeNumber(1, 100_000_000).default(600),
  REDIS_URL: url(/^rediss?$/, 'redis://host:6379').optional(),
  STRIPE_SECRET_KEY: z
    .string()
    .regex(/^[sr]k_/, { error: 'must start with sk_ or rk_' })
    .optional(),
  STRIPE_WEBHOOK_SECRET: z.string().startsWith('whsec_', { error: 'must start with whsec_' }).optional(),
  TEST_CHECKOUT: onOff.optional(),
  PUBLIC_URL: url(/^https?$/, 'https://api.example.com')
    .refine(isPlainAddress, { error: 'must have no user, no ? and no #' })
    .transform((value) => value.replace(/\/+$/, ''))
    .optional(),
  SMTP_URL: url(/^smtps?$/, 'smtps://user:password@mail.example.com')
    .refine(
      (value) => [...(URL.parse(value)?.searchParams.keys() ?? [])].every((name) => SMTP_OPTIONS.includes(name)),
      {
        error: `takes only these options, in this spelling: ${SMTP_OPTIONS.join(', ')}`,
      },
    )
    .optional(),
  MAIL_FROM: z
    .string()
    .regex(/^([^\r\n<>@]*<[^\s<>@,;]+@[^\s<>@,;]+>|[^\s<>@,;]+@[^\s<>@,;]+)$/, {
      error: 'must be an address such as Deckhand <deckhand@example.com>',
    })
    .optional(),
  SSO_ISSUERS: ssoIssuers.default([]),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,}$/, { error: 'must be at least 16 characters, without spaces' })
    .optional(),
  TRUST_PROXY: trustedProxies.default(false),
  ALLOWED_ORIGINS: list
    .refine((origins) => origins.every(isOrigin), {
      error: 'must be origins such as https://app.example.com, separated by commas',
    })
    .default([]),
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.optional(),
  OTEL_TRACES_EXPORTER: z.string().optional(),
  OTEL_SDK_DISABLED: z
    .string()
    .transform((value) => value.toLowerCase() === 'true')
    .default(false),
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS, { error: `must be one of ${SAMPLERS.join(', ')}` })
    .default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .refine((value) => /^\d*\.?\d+$/.test(value) && Number(value) <= 1, { error: 'must be a number from 0 to 1' })
    .transform(Number)
    .default(1),
  TEMPLATE_RUNS_KEPT_DAYS: wholeNumber(1, 36_500).default(90),
  CHECKOUTS_KEPT_DAYS: wholeNumber(90, 36_500).default(730),
  EVENTS_KEPT_DAYS: wholeNumber(1, 3650).default(30),
  AUDIT_KEPT_DAYS: wholeNumber(1, 36_500).default(365),
  DELETED_ROWS_KEPT_DAYS: wholeNumber(1, 36_500).optional(),
  WEBHOOKS: onOff.prefault('on'),
  WEBHOOK_ALLOWED_HOSTS: hostList(
    (host) => isHostAndPort(host.replace(/:\*$/, ':1')),
    ', or crm.internal:* for all ports',
  ),
  IDENTITY_ALLOWED_HOSTS: hostList(isHostAndPort),
  STOP_PAUSE_SECONDS: wholeNumber(0, 300).default(0),
  WORKERS: workers.prefault('1'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'must be one of fatal, error, warn, info, debug, trace, silent',
    })
    .default('info'),
});

export const SETTINGS: readonly string[] = Object.keys(Fields.shape);

/** The JSON schema of `Environment`. */
export const environmentSchema = () => z.toJSONSchema(Fields, { io: 'input' });

/** Checks rules over several settings even if other settings are invalid, so that all errors show at once. */
const when = () => true;

const Settings = Fields.refine((settings) => settings.DATABASE_URL === undefined || settings.JWT_SECRET !== undefined, {
  when,
  path: ['JWT_SECRET'],
  error: 'must be set, to the same value on every node, if DATABASE_URL is set',
})
  .refine((settings) => (settings.STRIPE_SECRET_KEY === undefined) === (settings.STRIPE_WEBHOOK_SECRET === undefined), {
    when,
    path: ['STRIPE_WEBHOOK_SECRET'],
    error: 'must be set together with STRIPE_SECRET_KEY',
  })
  .refine((settings) => !settings.TEST_CHECKOUT || settings.STRIPE_SECRET_KEY === undefined, {
    when,
    path: ['TEST_CHECKOUT'],
    error: 'must not be on together with STRIPE_SECRET_KEY: nobody would have to pay',
  })
  .refine(({ HOST, PUBLIC_URL, STRIPE_SECRET_KEY }) => PUBLIC_URL || !STRIPE_SECRET_KEY || !isWildcard(HOST), {
    when,
    path: ['PUBLIC_URL'],
    error: 'must be set when HOST is a wildcard: the payment provider sends people back to it',
  })
  .refine(({ SMTP_URL, MAIL_FROM }) => (SMTP_URL === undefined) === (MAIL_FROM === undefined), {
    when,
    path: ['MAIL_FROM'],
    error: 'must be set together with SMTP_URL',
  })
  .refine(({ HOST, PUBLIC_URL, SMTP_URL }) => PUBLIC_URL || !SMTP_URL || !isWildcard(HOST), {
    when,
    path: ['PUBLIC_URL'],
    error: 'must be set when HOST is a wildcard: links in mails lead there',
  })
  .refine(({ HOST, PUBLIC_URL, SSO_ISSUERS }) => PUBLIC_URL || !SSO_ISSUERS?.length || isLoopback(HOST), {
    when,
    path: ['PUBLIC_URL'],
    error: 'must be set for SSO_ISSUERS: identity providers send people back to it',
  })
  .refine(
    // An invalid one is still its text.
    ({ SSO_ISSUERS: all, TOKEN_LIFETIME_HOURS: most }) =>
      !Array.isArray(all) || all.every(({ session_hours = 1 }) => session_hours <= most),
    { when, path: ['SSO_ISSUERS'], error: 'session_hours must not be more than TOKEN_LIFETIME_HOURS' },
  )
  .refine(({ DATABASE_URL, DATABASE_REPLICA_URLS }) => DATABASE_URL || !DATABASE_REPLICA_URLS?.length, {
    when,
    path: ['DATABASE_REPLICA_URLS'],
    error: 'is only for a PostgreSQL server: set DATABASE_URL to its primary, too',
  })
  .refine(({ DATABASE_URL, DEMO_DATA }) => !(DATABASE_URL && DEMO_DATA), {
    when,
    path: ['DEMO_DATA'],
    error: 'is only for the embedded database; use npx deckhand demo to fill that of DATABASE_URL',
  })
  .refine(({ DATABASE_URL, WORKERS }) => DATABASE_URL || !(WORKERS > 1), {
    when,
    path: ['WORKERS'],
    error: 'must be 1 without DATABASE_URL: only one process can use the embedded database',
  })
  .refine(
    ({ DATABASE_POOL_SIZE, WORKERS }) =>
      DATABASE_POOL_SIZE === undefined || !(DATABASE_POOL_SIZE < LEAST_CONNECTIONS * WORKERS),
    {
      when,
      path: ['DATABASE_POOL_SIZE'],
      error: `must be at least ${LEAST_CONNECTIONS} for each of the WORKERS, which share it`,
    },
  )
  .transform((settings) => ({
    ...settings,
    DATABASE_POOL_SIZE: settings.DATABASE_POOL_SIZE ?? CONNECTIONS_OF_A_PROCESS * settings.WORKERS,
  }));

/** Whether an empty embedded database gets the demo data, whose password is public. */
export const hasDemoData = (settings: Settings): boolean => settings.DEMO_DATA ?? isForThisMachine(settings);
