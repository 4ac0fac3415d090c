import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { procedures } from '../../server/api/procedures.ts';
import { appRouter } from '../../server/api/routers/app.ts';
import type { Meta } from '../../server/api/trpc.ts';

/** Names of fields that are shown once, and may not be stored in plain text. */
const SECRET = /^(token|secret|key|password|recovery_codes|otpauth_uri|qr_svg)$|_(token|secret|password)$/;

const idempotencyOf = (name: string) =>
  (appRouter._def.procedures as unknown as Record<string, { _def: { meta: Meta } }>)[name]!._def.meta.idempotency;

function fieldsOf(schema: z.ZodType): string[] {
  const names = new Set<string>();
  z.toJSONSchema(schema, {
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      for (const name of Object.keys(jsonSchema.properties ?? {})) names.add(name);
    },
  });
  return [...names];
}

describe('the answer of a mutation with an idempotency key', () => {
  const mutations = procedures.filter(({ type }) => type === 'mutation');

  it('is not stored if it has a secret', () => {
    const secret = mutations.filter(({ output }) => fieldsOf(output).some((field) => SECRET.test(field)));
    const stored = secret.filter(({ name }) => !['secret', 'never'].includes(idempotencyOf(name) ?? ''));

    expect(secret.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['auth.authenticate', 'account.changePassword', 'account.renewRecoveryCodes']),
    );
    expect(stored.map(({ name }) => name)).toEqual([]);
  });

  it('is stored in all other cases', () => {
    const without = mutations.filter(({ name }) => ['secret', 'never'].includes(idempotencyOf(name) ?? ''));

    for (const { name, output } of without)
      expect(
        fieldsOf(output).some((field) => SECRET.test(field)),
        name,
      ).toBe(true);
  });
});
