import type { FastifyRequest } from 'fastify';
import { findProcedure } from '../api/procedures.ts';
import type { RestOperation } from '../api/restOperation.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    surface?: 'rest' | 'rpc' | 'mcp';
    operation?: string;
    rest?: RestOperation;
    /** A probe or scrape that comes every few seconds: its line in the log is at `debug`. */
    isProbe?: boolean;
  }
  interface FastifyRequest {
    /** Of an MCP request, whose body names it: undefined before it is read. */
    operation: string | undefined;
  }
}

/** The procedure that a request calls, for logs and metrics: a known name, `batch` or `other`, whatever was sent. */
export function operationOf({ routeOptions, params, operation: named }: FastifyRequest): string {
  const { surface, operation = named } = routeOptions.config;
  if (surface !== 'rpc') return operation ?? 'other';
  const path = (params as { '*': string })['*'];
  const called = path.split(',');
  if (!called.every(findProcedure)) return 'other';
  return called.length === 1 ? path : 'batch';
}

/** The version of the typed client that sent a request, for logs; undefined for other callers, and for what is no version. */
export function clientVersionOf({ headers }: FastifyRequest): string | undefined {
  const version = String(headers['x-deckhand-client']);
  return /^\d{1,6}\.\d{1,6}\.\d{1,6}$/.test(version) ? version : undefined;
}

/** The methods that OpenTelemetry knows; others, which may have any name, are `_OTHER`. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH']);
export const OTHER_METHOD = '_OTHER';

/** The method of a request, for traces and metrics. */
export const methodOf = ({ method }: FastifyRequest) => (METHODS.has(method) ? method : OTHER_METHOD);
