import type { AnyTRPCRouter, TRPCProcedureType } from '@trpc/server';

/** What a scope depends on. */
type Scoped = { name: string; type: TRPCProcedureType; access: string };

/** Routers that share their scopes. */
const AREAS: Record<string, string> = {
  masterBoards: 'templates',
  masterGroups: 'templates',
  masterCards: 'templates',
  templateRuns: 'templates',
};

/** Only for people who signed in: a key can't make keys. What a key may do to itself has the access `key`. */
const WITHOUT_KEYS = new Set(['account', 'keys']);

/** In addition for what only superadmins may call. */
export const ADMIN_SCOPE = 'admin';

/** The scopes that a key needs to call a procedure; undefined if no key may. */
export function scopesFor({ name, type, access }: Scoped): string[] | undefined {
  const [noun = ''] = name.split('.');
  if (access === 'key') return [];
  if (WITHOUT_KEYS.has(noun)) return undefined;
  if (access === 'anyone') return [];
  const scope = `${AREAS[noun] ?? noun}:${type === 'mutation' ? 'write' : 'read'}`;
  return access === 'superadmin' ? [scope, ADMIN_SCOPE] : [scope];
}

/** All scopes of the procedures of these routers. */
export function scopesIn(routers: Record<string, AnyTRPCRouter>): string[] {
  const scopes = Object.entries(routers).flatMap(([noun, { _def }]) =>
    Object.entries(_def.procedures as Record<string, Defined>).flatMap(
      ([verb, { _def }]) =>
        scopesFor({ name: `${noun}.${verb}`, type: _def.type, access: _def.meta?.access ?? '' }) ?? [],
    ),
  );
  return [...new Set(scopes)].sort();
}

type Defined = { _def: { type: TRPCProcedureType; meta?: { access?: string } } };
