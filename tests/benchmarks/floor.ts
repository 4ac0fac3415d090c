import { createHash, createSecretKey } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import argon2 from 'argon2';
import jwt from 'jsonwebtoken';
import pg from 'pg';
import {
  CREATE_CARD,
  CREATE_COMMENT,
  FIND_CALLER,
  FIND_USER,
  GET_BOARD,
  LIST_BOARDS,
  OPEN_SESSION,
  type Statement,
} from './floorStatements.ts';

/**
 * The baseline of the benchmark: the same answers to the same calls, written by hand with only `node:http` and `pg`.
 * It checks the token, looks up the caller and runs the same prepared statements; it has no limits, logs, metrics or document.
 */
export async function startFloor(databaseUrl: string, secret: string) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL_SIZE, application_name: 'floor' });
  const server = makeServer(pool, secret);
  server.keepAliveTimeout = 72_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await pool.end();
    },
  };
}

/** The default DATABASE_POOL_SIZE of the service. */
const POOL_SIZE = 10;
const TOKEN_LIFETIME_SECONDS = 12 * 60 * 60;
const ISSUER = 'deckhand';
const AUDIENCE = 'deckhand-api';

type Input = Record<string, any>;
type Caller = { id: number; project_id: number; platform_id: number };
type Run = (statement: Statement, values: unknown[]) => Promise<Record<string, any>[]>;
type Operation = {
  status: number;
  message: string;
  roles: readonly string[];
  answer: (run: Run, caller: Caller, input: Input) => Promise<object>;
};

class Refusal extends Error {
  status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function makeServer(pool: pg.Pool, secret: string): Server {
  const key = createSecretKey(Buffer.from(secret));
  const keyid = createHash('sha256').update(`deckhand key id ${secret}`).digest('base64url').slice(0, 12);
  const expected: jwt.VerifyOptions & { complete: true } = {
    algorithms: ['HS256'],
    issuer: ISSUER,
    audience: AUDIENCE,
    complete: true,
  };
  const run: Run = async ({ name, text }, values) => (await pool.query({ name, text, values })).rows;

  return createServer(async (request, response) => {
    let status: number;
    let text: string;
    try {
      [status, text] = request.url === AUTHENTICATE ? await authenticate(request) : await perform(request);
    } catch (error) {
      status = error instanceof Refusal ? error.status : 500;
      text = JSON.stringify({ error: true, message: (error as Error).message, data: [] });
    }
    response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
    });
    response.end(text);
  });

  async function perform(request: IncomingMessage): Promise<[number, string]> {
    const operation = OPERATIONS[request.url!];
    if (!operation || request.method !== 'POST') throw new Refusal(404, 'There is no such path.');
    const body = readBody(request);
    const caller = await findCaller(request, operation.roles);
    const data = await operation.answer(run, caller, objectOf(await body));
    return [operation.status, JSON.stringify({ error: false, message: operation.message, data })];
  }

  async function findCaller({ headers }: IncomingMessage, roles: readonly string[]): Promise<Caller> {
    const token = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
    if (token === undefined) throw new Refusal(401, 'Sign in first.');
    const { userId, sessionId } = claimsOf(token);
    const chosen = headers['x-project-id'] === undefined ? null : Number(headers['x-project-id']);
    const [found] = await run(FIND_CALLER, [chosen, sessionId, userId]);
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

  async function authenticate(request: IncomingMessage): Promise<[number, string]> {
    const { email, password } = objectOf(await readBody(request));
    mustBe(typeof email === 'string' && typeof password === 'string', 'email and password');
    const [user] = await run(FIND_USER, [email]);
    if (!user || !(await argon2.verify(user.password_hash, password))) throw new Refusal(401, 'Wrong.');

    const [session] = await run(OPEN_SESSION, [user.id, user.password_hash, TOKEN_LIFETIME_SECONDS]);
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
    return [200, JSON.stringify({ error: false, message: 'Signed in.', data, errors: [] })];
  }
}

const READERS = ['viewer', 'member', 'owner'];
const WRITERS = ['member', 'owner'];
const AUTHENTICATE = '/api/v1/authenticate';

const OPERATIONS: Record<string, Operation> = {
  '/api/services/operations/v1/operations/boards/list': {
    status: 200,
    message: 'Boards of the project.',
    roles: READERS,
    answer: async (run, { id: user_id, project_id }, { tool_key = null }) => {
      mustBe(tool_key === null || typeof tool_key === 'string', 'tool_key');
      const boards = await run(LIST_BOARDS, [project_id, tool_key, user_id]);
      if (boards[0]?.is_too_large) throw new Refusal(400, 'The boards are too large for one answer.');
      for (const board of boards) board.is_too_large = undefined;
      return { boards };
    },
  },
  '/api/services/operations/v1/operations/boards/get': {
    status: 200,
    message: 'The board.',
    roles: READERS,
    answer: async (run, caller, { id }) => {
      mustBe(isId(id), 'id');
      const [found] = await run(GET_BOARD, [id, caller.project_id, caller.id]);
      if (!found) throw new Refusal(404, 'There is no such board.');
      if (found.project_id !== caller.project_id) throw new Refusal(403, 'This board belongs to another project.');
      if (found.is_too_large) throw new Refusal(400, 'The board is too large for one answer.');
      return { board: found.board };
    },
  },
  '/api/services/operations/v1/operations/cards/create': {
    status: 201,
    message: 'Card created.',
    roles: WRITERS,
    answer: async (run, caller, input) => {
      const { title, group_id, tag_id, owner_id, due_date } = input;
      mustBe(typeof title === 'string' && title.length > 0 && title.length <= 255, 'title');
      for (const id of [group_id, tag_id, owner_id]) mustBe(id == null || isId(id), 'ids');
      const [created] = await run(CREATE_CARD, [
        JSON.stringify({ ...input, is_due_at_midnight: isMidnight(due_date) }),
        caller.project_id,
        caller.platform_id,
        caller.id,
      ]);
      if (created!.id === null) throw new Refusal(422, 'It refers to something that is not there.');
      return { card: created! };
    },
  },
  '/api/services/operations/v1/operations/comments/create': {
    status: 201,
    message: 'Comment created.',
    roles: WRITERS,
    answer: async (run, caller, { card_id, comment, parent_comment_id = null }) => {
      mustBe(isId(card_id) && (parent_comment_id === null || isId(parent_comment_id)), 'ids');
      mustBe(typeof comment === 'string' && comment.length > 0 && comment.length <= 65_536, 'comment');
      const [created] = await run(CREATE_COMMENT, [card_id, parent_comment_id, caller.id, comment, caller.project_id]);
      if (!created) throw new Refusal(404, 'There is no such card.');
      if (created.id === null) throw new Refusal(422, 'It refers to something that is not there.');
      return { comment: created };
    },
  },
};

/** A date-time, not a date. */
const isMidnight = (due: any) => due?.length > '2026-01-31'.length && Date.parse(due) % 86_400_000 === 0;

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (part: string) => {
      text += part;
      if (text.length > LARGEST_BODY) reject(new Refusal(400, 'The body is too large.'));
    });
    request.on('end', () => resolve(text));
    request.on('error', reject);
  });
}
const LARGEST_BODY = 1024 * 1024;

function objectOf(text: string): Input {
  const value = text === '' ? {} : JSON.parse(text);
  mustBe(typeof value === 'object' && value !== null, 'the body');
  return value;
}

function mustBe(isRight: boolean, what: string): void {
  if (!isRight) throw new Refusal(422, `Not accepted: ${what}.`);
}

const isId = (value: unknown) => Number.isInteger(value) && (value as number) > 0 && (value as number) <= 2_147_483_647;

if (process.argv[1] === import.meta.filename) {
  const { url } = await startFloor(process.env.DATABASE_URL!, process.env.JWT_SECRET!);
  console.log(`The floor listens on ${url}`);
}
