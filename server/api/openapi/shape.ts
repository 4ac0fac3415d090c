import type { Schema } from './example.ts';

/** The parts of an OpenAPI document that the service reads and changes. */

export type Content = { 'application/json': { schema: Schema; example?: unknown } };
/** A shared response is only a reference: `responsesOf` resolves it. */
export type Response = { $ref?: string; description: string; headers?: object; content?: Content };

export type Operation = {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  deprecated?: true;
  security?: object[];
  parameters?: { name: string; in: string; description?: string; [key: string]: unknown }[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, Response>;
  'x-beyond-specification'?: true;
  /** It deletes or ends something, or changes many projects at once. */
  'x-destructive'?: true;
  /** Reasons in `X-Error-Reason`, besides those of every operation, which `x-error-reasons` of the document lists. */
  'x-error-reasons': string[];
  /** The same call in the typed client: `client.` and this. */
  'x-client-call': string;
};
export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; [key: string]: unknown };
  tags: { name: string; description: string }[];
  /** Every operation is a `post`; only the stream of events is a `get` instead (`stream.ts`). */
  paths: Record<string, { post: Operation; get?: object }>;
  components: { schemas: Record<string, Schema>; [kind: string]: unknown };
  [key: string]: unknown;
};
