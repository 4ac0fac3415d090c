import { document } from '../../server/contract/violations.ts';
import { type ApiRequest, SAMPLES } from '../../server/web/pages/api/samples.js';

/** The request that the API page shows first for an operation. */
export function requestOf(path: string, origin: string, more: Partial<ApiRequest> = {}): ApiRequest {
  const { requestBody, security = [], 'x-client-call': clientCall } = document.paths[path]!.post;
  const body = requestBody?.content['application/json'].example as ApiRequest['body'];
  return { origin, path, query: {}, headers: {}, body, clientCall, needsSignIn: security.length > 0, ...more };
}

export const writeSample = (name: string, request: ApiRequest) =>
  SAMPLES.find((sample) => sample.name === name)!.write(request);
