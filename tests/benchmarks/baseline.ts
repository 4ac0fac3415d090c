import { createHash, createSecretKey } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import argon2 from 'argon2';
import jwt from 'jsonwebtoken';
import pg from 'pg';
import {
  type Caller,
  FIND_CALLER,
  FIND_USER,
  type Input,
  OPEN_SESSION,
  STATEMENTS,
  type Statements,
} from './statements.ts';

/**
 * What all baselines do, whatever serves it: they check the token, look up the caller, check the input and run prepared
 * statements. No limits, logs, metrics or document.
 */

/** The default DATABASE_POOL_SIZE of the service. */
const POOL_SIZE = 10;
const TOKEN_LIFETIME_SECONDS = 12 * 60 * 60;
const ISSUER = 'deckhand';
const AUDIENCE = 'deckhand-api';

type Rows = Record<string, any>[];
export type Operation = {
  status: number;
  message: string;
  roles: readonly string[];
  statement: keyof Statements;
  check: (input: Input) => void;
  answer: (rows: Rows, caller: Caller) => object;
};

export class Refusal extends Error {
  statusCode: number;
  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** The database of a baseline, and who calls it. */
export function openBaseline(databaseUrl: string, secret: string, name: string) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL_SIZE, application_name: name });
  const run = async (name: string, text: string, values: unknown[]): Promise<Rows> =>
    (await pool.query({ name, text, values })).rows;
  const key = createSecretKey(Buffer.from(secret));
  const keyid = createHash('sha256').update(`deckhand key id ${secret}`).digest('base64url').slice(0, 12);
  const expected: jwt.VerifyOptions & { complete: true } = {
    algorithms: ['HS256'],
    issuer: ISSUER,
    audience: AUDIENCE,
    complete: true,
  };
  return { perform, findCaller, authenticate, end: () => pool.end() };

  async function perform({ statement, check, answer }: Operation, caller: Caller, input: Input): Promise<object> {
    check(input);
    const { text, values } = STATEMENTS[statement];
    return answer(await run(statement, text, values(caller, input)), caller);
  }

  async function findCaller(headers: IncomingHttpHeaders, roles: readonly string[]): Promise<Caller> {
    const token = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
    if (token === undefined) throw new Refusal(401, 'Sign in first.');
    const { userId, sessionId } = claimsOf(token);
    const chosen = headers['x-project-id'] === undefined ? null : Number(headers['x-project-id']);
    const [found] = await run('find_caller', FIND_CALLER, [chosen, sessionId, userId]);
    if (!found) throw new Refusal(401, 'Sign in first.');
    const role = found.superadmin ? 'owner' : found.role;
    if (found.project_id === null || !roles.includes(role)) throw new Refusal(403, 'You may not do this.');
    return found as Caller;
  }

  function claimsOf(token: string) {
    try {
      const { header, payload } = jwt.verify(token, key, expected);
      if (header.kid === keyid && typeof payload === 'object') return { userId: payload.sub, sessionId: payload.jti };
    } catch {}
    throw new Refusal(401, 'Sign in first.');
  }

  async function authenticate({ email, password }: Input): Promise<object> {
    mustBe(typeof email === 'string' && typeof password === 'string', 'email and password');
    const [user] = await run('find_user', FIND_USER, [email]);
    if (!user || !(await argon2.verify(user.password_hash, password))) throw new Refusal(401, 'Wrong.');

    const [session] = await run('open_session', OPEN_SESSION, [user.id, user.password_hash, TOKEN_LIFETIME_SECONDS]);
    if (!session) throw new Refusal(401, 'Wrong.');
    const token = jwt.sign({}, key, {
      algorithm: 'HS256',
      keyid,
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: String(user.id),
      jwtid: session.id,
      expiresIn: TOKEN_LIFETIME_SECONDS,
    });
    const { id, name, language, superadmin, superadmin_billing, enable_ai } = user;
    const rights = { superadmin, superadmin_billing, enable_ai };
    const data = {
      needs_code__regeneration: false,
      warn_message: '',
      token,
      language,
      id,
      name,
      email: user.email,
      ...rights,
    };
    return { error: false, message: 'Signed in.', data, errors: [] };
  }
}

const READERS = ['viewer', 'member', 'owner'];
const WRITERS = ['member', 'owner'];
export const AUTHENTICATE = '/api/v1/authenticate';

/** By path. */
export const OPERATIONS: Record<string, Operation> = {
  '/api/services/operations/v1/operations/boards/list': {
    status: 200,
    message: 'Boards of the project.',
    roles: READERS,
    statement: 'listBoards',
    check: ({ tool_key = null }) => mustBe(tool_key === null || typeof tool_key === 'string', 'tool_key'),
    answer: (boards) => ({ boards }),
  },
  '/api/services/operations/v1/operations/boards/get': {
    status: 200,
    message: 'The board.',
    roles: READERS,
    statement: 'getBoard',
    check: ({ id }) => mustBe(isId(id), 'id'),
    answer: ([found], { project_id }) => {
      if (!found) throw new Refusal(404, 'There is no such board.');
      if (found.project_id !== project_id) throw new Refusal(403, 'This board belongs to another project.');
      return { board: found.board };
    },
  },
  '/api/services/operations/v1/operations/cards/create': {
    status: 201,
    message: 'Card created.',
    roles: WRITERS,
    statement: 'createCard',
    check: ({ title, group_id, tag_id, owner_id }) => {
      mustBe(typeof title === 'string' && title.length > 0 && title.length <= 255, 'title');
      for (const id of [group_id, tag_id, owner_id]) mustBe(id == null || isId(id), 'ids');
    },
    answer: ([card]) => {
      if (card?.id == null) throw new Refusal(422, 'It refers to something that is not there.');
      return { card };
    },
  },
  '/api/services/operations/v1/operations/comments/create': {
    status: 201,
    message: 'Comment created.',
    roles: WRITERS,
    statement: 'createComment',
    check: ({ card_id, comment, parent_comment_id = null }) => {
      mustBe(isId(card_id) && (parent_comment_id === null || isId(parent_comment_id)), 'ids');
      mustBe(typeof comment === 'string' && comment.length > 0 && comment.length <= 65_536, 'comment');
    },
    answer: ([comment]) => {
      if (!comment) throw new Refusal(404, 'There is no such card.');
      if (comment.id === null) throw new Refusal(422, 'It refers to something that is not there.');
      return { comment };
    },
  },
};

/** The body of a request as an object. */
export function inputOf(value: unknown): Input {
  mustBe(typeof value === 'object' && value !== null, 'the body');
  return value as Input;
}

function mustBe(isRight: boolean, what: string): void {
  if (!isRight) throw new Refusal(422, `Not accepted: ${what}.`);
}

const isId = (value: unknown) => Number.isInteger(value) && (value as number) > 0 && (value as number) <= 2_147_483_647;
