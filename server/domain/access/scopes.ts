import type { AnyTRPCRouter, TRPCProcedureType } from '@trpc/server';

/** What a scope depends on. */
type Scoped = { name: string; type: TRPCProcedureType; access: string; proof?: unknown };

/** Routers that share their scopes. */
const AREAS: Record<string, string> = {
  masterBoards: 'templates',
  masterGroups: 'templates',
  masterCards: 'templates',
  masterTrash: 'templates',
  templateRuns: 'templates',
  releases: 'templates',
  rollouts: 'templates',
  templateFiles: 'templates',
};

/** Only for people who signed in: a key can't make keys, nor rules that do. What a key may do to itself has the access `key`. */
const WITHOUT_KEYS = new Set(['account', 'keys', 'identityIssuers', 'identityRules']);

/** In addition for what only superadmins may call. */
export const ADMIN_SCOPE = 'admin';

/** In addition for what needs fresh proof, which a key can't give: secrets, rights, and ways to have data sent elsewhere. */
export const GRANTS_SCOPE = 'grants:write';

/** A webhook hands out events. */
const ALSO_NEEDED: Record<string, readonly string[]> = {
  'webhooks.create': ['events:read'],
  'webhooks.update': ['events:read'],
};

/** The scopes that a key needs to call a procedure, whatever its input; undefined if no key may. */
export function scopesFor({ name, type, access, proof }: Scoped): string[] | undefined {
  const [noun = ''] = name.split('.');
  if (access === 'key') return [];
  if (WITHOUT_KEYS.has(noun)) return undefined;
  if (access === 'anyone') return [];
  const scope = `${AREAS[noun] ?? noun}:${type === 'mutation' ? 'write' : 'read'}`;
  return [
    scope,
    ...(ALSO_NEEDED[name] ?? []),
    ...(access === 'superadmin' ? [ADMIN_SCOPE] : []),
    // Where only some inputs need it, it is checked with the input.
    ...(proof === 'always' ? [GRANTS_SCOPE] : []),
  ];
}

/** All scopes of the procedures of these routers. */
export function scopesIn(routers: Record<string, AnyTRPCRouter>): string[] {
  const scopes = Object.entries(routers).flatMap(([noun, { _def }]) =>
    Object.entries(_def.procedures as Record<string, Defined>).flatMap(
      ([verb, { _def }]) => scopesFor({ name: `${noun}.${verb}`, type: _def.type, access: '', ..._def.meta }) ?? [],
    ),
  );
  return [...new Set(scopes)].sort();
}

type Defined = { _def: { type: TRPCProcedureType; meta?: { access?: string; proof?: unknown } } };
