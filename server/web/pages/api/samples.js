import { literal, PHP, PYTHON, TYPESCRIPT } from './literal.js';

/**
 * A request as the form has it; every sample is made from it.
 * @typedef {{
 *   origin: string,
 *   path: string,
 *   query: Record<string, string>,
 *   headers: Record<string, string>,
 *   body: Record<string, unknown> | undefined,
 *   clientCall: string,
 *   needsSignIn: boolean,
 * }} ApiRequest
 */

/**
 * The samples read the token from the environment variable TOKEN, so that none is copied by accident.
 * @typedef {{ name: string, write: (request: ApiRequest) => string }} Sample
 * @type {[Sample, ...Sample[]]}
 */
export const SAMPLES = [
  { name: 'curl', write: curl },
  { name: 'TypeScript', write: typescript },
  { name: 'Python', write: python },
  { name: 'PHP', write: php },
];

/** @param {ApiRequest} request */
export function addressOf({ origin, path, query }) {
  const search = new URLSearchParams(query).toString();
  return `${origin}/api${path}${search && `?${search}`}`;
}

/** @param {ApiRequest} request */
function curl(request) {
  const token = request.needsSignIn ? ['-H "Authorization: Bearer $TOKEN"'] : [];
  const headers = Object.entries(headersOf(request)).map(([name, value]) => `-H ${shellQuote(`${name}: ${value}`)}`);
  const body = request.body ? [`-d ${shellQuote(JSON.stringify(request.body, null, 2))}`] : [];
  return [`curl -X POST ${shellQuote(addressOf(request))}`, ...token, ...headers, ...body].join(' \\\n  ');
}

/** @param {ApiRequest} request */
function typescript({ origin, query, headers, body, clientCall, needsSignIn }) {
  const { 'X-Project-Id': projectId, 'Idempotency-Key': idempotencyKey } = headers;
  const options = [
    `url: ${TYPESCRIPT.text(origin)}`,
    ...(needsSignIn ? ['token: process.env.TOKEN'] : []),
    ...(projectId ? [`projectId: ${Number(projectId)}`] : []),
  ];
  const hasInput = body !== undefined || Object.keys(query).length > 0;
  const input = hasInput ? literal({ ...body, ...query }, TYPESCRIPT) : 'undefined';
  const parts = idempotencyKey
    ? [input, `{ idempotencyKey: ${TYPESCRIPT.text(idempotencyKey)} }`]
    : hasInput
      ? [input]
      : [];
  return `import { createClient } from 'deckhand-client';

const client = createClient({ ${options.join(', ')} });
const result = await client.${clientCall}(${parts.join(', ')});
console.log(result);
`;
}

/** @param {ApiRequest} request */
function python(request) {
  const imports = ['json', ...(request.needsSignIn ? ['os'] : []), 'urllib.request'];
  const headers = Object.entries(headersOf(request)).map(([name, value]) => PYTHON.pair(name, PYTHON.text(value)));
  const token = request.needsSignIn ? [`'Authorization': 'Bearer ' + os.environ['TOKEN']`] : [];
  const options = [
    PYTHON.text(addressOf(request)),
    "method='POST'",
    `headers={${[...token, ...headers].map((line) => `\n        ${line},`).join('')}\n    }`,
    ...(request.body ? [`data=json.dumps(${literal(request.body, PYTHON, '    ', '    ')}).encode()`] : []),
  ];
  return `${imports.map((name) => `import ${name}\n`).join('')}
request = urllib.request.Request(
${options.map((line) => `    ${line},\n`).join('')})
with urllib.request.urlopen(request) as response:
    print(json.load(response))
`;
}

/** @param {ApiRequest} request */
function php(request) {
  const token = request.needsSignIn ? [`'Authorization: Bearer ' . getenv('TOKEN')`] : [];
  const headers = Object.entries(headersOf(request)).map(([name, value]) => PHP.text(`${name}: ${value}`));
  const body = request.body ? `json_encode(${literal(request.body, PHP, '    ', '    ')})` : "''";
  return `<?php
$request = curl_init(${PHP.text(addressOf(request))});
curl_setopt_array($request, [
    CURLOPT_POST => true,
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => [${[...token, ...headers].map((line) => `\n        ${line},`).join('')}
    ],
    CURLOPT_POSTFIELDS => ${body},
]);
print_r(json_decode(curl_exec($request), true));
`;
}

/**
 * The headers besides the token.
 * @param {ApiRequest} request
 * @returns {Record<string, string>}
 */
const headersOf = ({ headers, body }) => ({ ...(body && { 'Content-Type': 'application/json' }), ...headers });

/** @param {string} text */
const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
