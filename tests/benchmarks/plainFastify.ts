import Fastify, { type FastifyError } from 'fastify';
import { z } from 'zod';
import { ListedBoard } from '../../shared/board.ts';
import { CreatedCard } from '../../shared/card.ts';
import { Comment } from '../../shared/comment.ts';
import { AUTHENTICATE, inputOf, OPERATIONS, openBaseline } from './baseline.ts';
import type { Caller } from './statements.ts';

declare module 'fastify' {
  interface FastifyRequest {
    baselineCaller: Caller | null;
  }
}

/**
 * The usual baseline of the benchmark: the same answers to the same calls as a plain Fastify server with `pg` gives them, with
 * its body parser, hooks and response schemas.
 */
export async function startPlainFastify(databaseUrl: string, secret: string) {
  const { perform, findCaller, authenticate, end } = openBaseline(databaseUrl, secret, 'plain-fastify');
  const app = Fastify();
  app.decorateRequest('baselineCaller', null);
  app.addHook('onClose', end);
  app.setErrorHandler(({ statusCode = 500, message }: FastifyError, _request, reply) =>
    reply.code(statusCode).send({ error: true, message, data: [] }),
  );

  for (const [path, operation] of Object.entries(OPERATIONS)) {
    const { status, message, roles } = operation;
    app.post(
      path,
      {
        schema: { response: { [status]: envelopeOf(DATA[path.split('/operations/').at(-1)!]!) } },
        onRequest: async (request) => {
          request.baselineCaller = await findCaller(request.headers, roles);
        },
      },
      async (request, reply) => {
        reply.code(status);
        return {
          error: false,
          message,
          data: await perform(operation, request.baselineCaller!, inputOf(request.body)),
        };
      },
    );
  }
  app.post(AUTHENTICATE, async (request) => authenticate(inputOf(request.body)));

  return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() };
}

const envelopeOf = (data: Record<string, object>) => ({
  type: 'object',
  properties: {
    error: { type: 'boolean' },
    message: { type: 'string' },
    data: { type: 'object', properties: data },
  },
});

/** `nullable` instead of `anyOf`, which the serializer would validate each value against. */
const schemaOf = ({ shape }: z.ZodObject) =>
  z.toJSONSchema(z.object(shape), {
    target: 'openapi-3.0',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'date') jsonSchema.type = 'string';
    },
  });

const DATA: Record<string, Record<string, object>> = {
  'boards/list': { boards: { type: 'array', items: schemaOf(ListedBoard) } },
  'boards/get': { board: { type: 'string' } },
  'cards/create': { card: schemaOf(CreatedCard) },
  'comments/create': { comment: schemaOf(Comment) },
};

if (process.argv[1] === import.meta.filename) {
  const { url } = await startPlainFastify(process.env.DATABASE_URL!, process.env.JWT_SECRET!);
  console.log(`Plain Fastify listens on ${url}`);
}
