import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type Tool,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, type Failure, notFound } from '../../shared/errors.ts';
import { inputParser } from '../api/parser.ts';
import type { Procedure } from '../api/procedures.ts';
import {
  CALL,
  findOperation,
  findToolProcedure,
  OperationCall,
  OperationSearch,
  SEARCH,
  searchOperations,
  toolsFor,
} from '../api/tools.ts';
import { answer, type Exchange, noteRefused } from '../call/answer.ts';
import type { AccountCaller } from '../domain/access/context.ts';
import { writeFields } from '../runtime/jsonText.ts';
import { VERSION } from '../runtime/version.ts';
import { readKey, sendReplayed } from './exchange.ts';
import { sendErrorHeaders } from './headers.ts';

const INSTRUCTIONS = `Deckhand keeps task boards: a project has boards, a board has groups, a group has cards, a card has comments.
Calls act in the project of the row that they name, else in the caller's default project. Operations without a tool of their own:
find them with operations_search, call them with operations_call. Answers are JSON; fields without a value are left out.`;

/** Answers one message, with a server of its own, since nothing is kept between requests. */
export async function answerMessage(
  request: FastifyRequest,
  reply: FastifyReply,
  exchange: Exchange,
  parsedBody: unknown,
): Promise<Response> {
  request.operation = KNOWN_METHODS.find((method) => method === (parsedBody as { method?: unknown } | null)?.method);
  const message = new Request('http://localhost/mcp', { method: 'POST', headers: headersOf(request) });
  const server = serverFor(request, reply, exchange);
  if (!(await isLegacyRequest(message, parsedBody))) {
    const onerror = (error: Error) => request.log.debug(error);
    return createMcpHandler(() => server, { legacy: 'reject', maxSubscriptions: 0, onerror }).fetch(message, {
      parsedBody,
    });
  }
  // Revisions before 2026-07-28, with `initialize`; the SDK's own fallback for them answers with streams.
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(message, { parsedBody });
  } finally {
    await server.close();
  }
}

/** For logs and metrics; a call of a tool counts as its procedure. */
const KNOWN_METHODS = ['initialize', 'notifications/initialized', 'ping', 'server/discover', 'tools/list'];

const HEADERS = ['accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

const headersOf = ({ headers }: FastifyRequest): [string, string][] => [
  ['content-type', 'application/json'],
  ...HEADERS.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, String(headers[name])] as [string, string]],
  ),
];

function serverFor(request: FastifyRequest, reply: FastifyReply, exchange: Exchange): Server {
  const info = { name: 'deckhand', title: 'Deckhand', version: VERSION };
  const server = new Server(info, { capabilities: { tools: {} }, instructions: INSTRUCTIONS });
  const caller = exchange.caller as AccountCaller;
  server.setRequestHandler('tools/list', () => ({ tools: toolsFor(caller) as Tool[] }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: input = {}, _meta } }) => {
    try {
      if (name === SEARCH.name) {
        request.operation = name;
        return textOf(JSON.stringify(searchOperations(caller, readSearch(input, true) as OperationSearch)));
      }
      const called = procedureOf(name, input);
      request.operation = called.procedure.name;
      exchange.called = [called.procedure];
      return await callTool(reply, exchange, { ...called, key: _meta?.idempotency_key });
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return refusalOf(reply, noteRefused(exchange, error).failure);
    }
  });
  return server;
}

const readSearch = inputParser(OperationSearch);
const readCall = inputParser(OperationCall);

function procedureOf(tool: string, given: unknown): { procedure: Procedure; input: unknown } {
  const own = findToolProcedure(tool);
  if (own) return { procedure: own, input: given };
  if (tool !== CALL.name) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${tool}`);
  const { name, input } = readCall(given, true) as OperationCall;
  const procedure = findOperation(name);
  if (!procedure) throw notFound(noOperation(name), 'unknown_procedure');
  return { procedure, input };
}

/** Also for those that exist, but return a secret. */
const noOperation = (name: string) =>
  `There is no operation "${name}" for assistants. Find one with operations_search.`;

type ToolCall = { procedure: Procedure; input: unknown; key: unknown };

async function callTool(
  reply: FastifyReply,
  exchange: Exchange,
  { procedure, input, key }: ToolCall,
): Promise<CallToolResult> {
  const { name, type, rest } = procedure;
  const call = { procedure, index: 0, readInput: () => input, key: key === undefined ? undefined : readKey(key) };
  const answered = await answer(exchange, call);
  if ('failure' in answered) return refusalOf(reply, answered.failure);
  const { data, isReplayed } = answered;
  sendReplayed(reply, isReplayed ? [0] : [], 1);
  if (data === undefined) return textOf(rest?.message ?? name);
  const text = writeFields(data as object);
  if (type === 'query' && text.length > LARGEST_RESULT) throw badRequest(TOO_LARGE, 'answer_too_large');
  return textOf(JSON.stringify(JSON.parse(text), withoutNull));
}

/** No model reads more. */
const LARGEST_RESULT = 1024 * 1024;
const TOO_LARGE = 'The answer is too large for an assistant: more than 1 MiB. Read fewer rows, page by page.';

/** Once, as text, which models read. Fields without a value are left out: half of a card's are null. */
const textOf = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });
const withoutNull = (_: string, value: unknown) => (value === null ? undefined : value);

/** A refused call is a result, so that the model can read why; and a structure, so that programs can decide by the reason. */
function refusalOf(reply: FastifyReply, failure: Failure): CallToolResult {
  sendErrorHeaders(reply, failure);
  const { status, reason, message, errors, retryAfterSeconds: retry_after_seconds } = failure;
  const refusal = { error: { status, reason, message, errors, retry_after_seconds } };
  return { ...textOf(JSON.stringify(refusal)), structuredContent: refusal, isError: true };
}
