import { TRPCError } from '@trpc/server';
import { badRequest, invalid, JSON_WANTED, notFound, toFailure } from '../../../shared/errors.ts';
import { rowChanged } from '../../database/version.ts';
import { accessError } from '../../domain/access/access.ts';
import type { Caller } from '../../domain/access/context.ts';
import { tokenRefused } from '../../domain/account/exchange.ts';
import { codeRequired, wrongCredentials } from '../../domain/account/signIn.ts';
import { DEACTIVATED, refused } from '../../domain/account/sso.ts';
import { overLimit } from '../../limits/rateLimit.ts';
import { NO_TOKEN } from '../../security/identityToken.ts';
import type { RestProcedure } from '../procedures.ts';
import { type ErrorStatus, errorBody } from '../restOperation.ts';

/** The body of an error, with the message of the code that throws it. */
export function errorExample(status: ErrorStatus, procedure: RestProcedure): object {
  return errorBody(procedure.rest.bodies[status], toFailure(ERRORS[status](procedure)));
}

const ERRORS: Record<ErrorStatus, (procedure: RestProcedure) => unknown> = {
  400: () => badRequest(JSON_WANTED, 'body_not_json'),
  401: (procedure) => accessError(undefined, procedure) ?? (REFUSED[procedure.name] ?? codeRequired)(),
  403: (procedure) => accessError(VIEWER, procedure) ?? accessError(WITH_KEY, procedure) ?? refused(DEACTIVATED),
  404: (procedure) => notFound(MISSING[procedure.name] ?? `There is no such ${rowOf(procedure)}.`),
  412: rowChanged,
  422: invalidInput,
  429: () => overLimit({ retryAfterSeconds: 1 }),
  500: () => new Error(),
};

/** The 401 of those who need no token. */
const REFUSED: Record<string, () => Error> = {
  'auth.authenticate': wrongCredentials,
  'auth.exchange': () => tokenRefused(NO_TOKEN),
};

const VIEWER: Caller = {
  id: 1,
  sessionId: '',
  superadmin: false,
  superadmin_billing: false,
  project: undefined,
  isProjectChosen: false,
  highestRole: 'viewer',
};

/** A 403 for operations that a viewer may call: the key has no scopes. */
const WITH_KEY: Caller = {
  ...VIEWER,
  key: { id: 1, secretHash: '', scopes: [], projectId: null, isElsewhere: false, isUseDue: false },
};

/** Messages that don't name the row of the id, or another kind of row than the operation. */
const MISSING: Record<string, string> = {
  'account.unlinkIdentity': 'You have not linked such an identity.',
  'members.set': 'This user is not a member of this project.',
  'members.remove': 'This user is not a member of this project.',
  'subscriptions.upgradeTrial': 'There is no subscription for this product.',
  'releases.publish': 'There is no such master board.',
  'templates.drift': 'There is no such master board.',
  'templates.reset': 'There is no such card.',
};

/** The row that the input names, by its own id or by another one: `masterGroups.create` has the `board_id` of a master board. */
function rowOf({ name, input }: RestProcedure): string {
  const own = name.endsWith('Invitation') ? 'invitation' : (NOUNS[name.replace(/\..*/, '')] ?? rowNameOf(name));
  const fields = fieldsOf(input);
  const field = fields.find((field) => field.endsWith('_id'));
  if (field === undefined || fields.includes('id')) return own;
  const other = NOUNS[field] ?? field.replace(/_id$/, '');
  return own.startsWith('master ') ? `master ${other}` : other;
}

const NOUNS: Record<string, string> = {
  version_id: 'theme version',
  templateRuns: 'run',
  templateFiles: 'master board',
  trash: 'board',
  masterTrash: 'master board',
};

/** `masterBoards.get` is about a master board. */
const rowNameOf = (name: string) =>
  name.replace(/s?\..*/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function fieldsOf(input: RestProcedure['input']): string[] {
  const { shape, def } = (input ?? {}) as { shape?: object; def?: { innerType?: { shape?: object } } };
  return Object.keys(shape ?? def?.innerType?.shape ?? {});
}

/** The validation error of an input without fields or, if none is required, with a field of the wrong type; or with any field. */
function invalidInput({ input }: RestProcedure): unknown {
  if (!input) return invalid({ id: 'is not a known field' });
  const inputs = [{}, ...fieldsOf(input).map((field) => ({ [field]: {} }))];
  const cause = inputs.map((wrong) => input?.safeParse(wrong).error).find((error) => error !== undefined);
  return new TRPCError({ code: 'BAD_REQUEST', cause });
}
