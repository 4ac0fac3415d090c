import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { type Operation, operationsOf, responsesOf } from '../../server/api/openapi/document.ts';
import type { Schema } from '../../server/api/openapi/example.ts';
import { restProcedures } from '../../server/api/procedures.ts';
import { document } from '../../server/contract/violations.ts';
import { recentProof } from '../../shared/account.ts';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import { manyRows } from '../../shared/rows.ts';
import { schemasIn } from '../harness/schemas.ts';
import answers from '../recording/answers.json' with { type: 'json' };

const operations = operationsOf(document);

const schemas = schemasIn(document.components.schemas, '');

describe('the OpenAPI document', () => {
  it('has version 3.1, and describes each REST operation once, as a POST', () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(operations.map(({ path }) => path).sort()).toEqual(restProcedures.map(({ rest }) => rest.path).sort());
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  });

  it('describes the stream of events as its only GET, with the errors of their list', () => {
    const others = Object.entries(document.paths).filter(([, { get }]) => get);
    const { responses: listed } = document.paths['/services/platforms/v1/events/list']!.post;

    expect(others.map(([path]) => path)).toEqual(['/services/platforms/v1/events/stream']);
    const { get, post } = others[0]![1] as unknown as { get: Operation; post?: unknown };
    expect(post).toBeUndefined();
    expect(get.parameters?.map(({ name }) => name)).toEqual([
      'types',
      'project_id',
      'after',
      'Last-Event-ID',
      'X-Project-Id',
    ]);
    expect(get.parameters?.[0]).toMatchObject({ in: 'query', explode: false, schema: { type: 'array' } });
    expect(get.responses).toEqual({ ...listed, 200: get.responses[200] });
    expect(Object.keys(get.responses[200]!.content!)).toEqual(['text/event-stream']);
    expect(get.security).toEqual([{ Authorization: [] }, { ApiKey: ['events:read'] }]);
  });

  it('marks what is beyond the 22 specified operations, in tags of their own', () => {
    const specified = operations.filter((operation) => !operation['x-beyond-specification']);
    const [first, second] = document['x-tagGroups'] as { name: string; tags: string[] }[];

    expect(specified).toHaveLength(22);
    expect(new Set(specified.flatMap(({ tags }) => tags))).toEqual(new Set(first!.tags));
    expect([...first!.tags, ...second!.tags]).toEqual(document.tags.map(({ name }) => name));
    expect(first!.tags.filter((tag) => second!.tags.includes(tag))).toEqual([]);
  });

  it('marks as destructive what deletes or ends something, or changes many projects, by what it says about itself', () => {
    const says =
      /\b(deletes?|erases?|removes?|revokes?|ends?|aborts?|discards?|rolls? .*back|skips?|resets?|drops?|disables?|withdraws?|declines?|leaves? a|rotates?|renews?|deprecates?|signs? .*out|every active project)\b/i;
    const nameOf = (operation: Operation) => operation['x-client-call'].replace(/\.\w+$/, '');
    const changes = operations.filter((operation) => operation['x-client-call'].endsWith('.mutate'));
    const firstWords = ({ summary, description }: Operation) => `${summary}. ${/^.*?\.(?=\s|$)/s.exec(description)}`;

    const marked = operations.filter((operation) => operation['x-destructive']).map(nameOf);
    const expected = changes.filter((operation) => says.test(firstWords(operation))).map(nameOf);

    // "At the end", "moves its end", "ends snoozing", "ask for a reset"; a new password of another user signs them out.
    const harmless = ['cards.create', 'masterCards.create', 'subscriptions.setTrial', 'cards.snooze', 'users.update'];
    harmless.push('account.requestPasswordReset');
    // They say nothing of the projects that they change.
    const rollouts = ['start', 'resume', 'advance', 'retryFailed'].map((verb) => `rollouts.${verb}`);
    expect([...marked, ...harmless].toSorted()).toEqual([...expected, ...rollouts].toSorted());
  });

  it('lists the reasons of each operation, apart from those of every one', () => {
    const common = document['x-error-reasons'] as string[];
    const all = operations.flatMap((operation) => operation['x-error-reasons']);

    expect(common).toContain('over_rate_limit');
    expect(all.filter((reason) => common.includes(reason))).toEqual([]);
    expect(document.paths['/v1/authenticate']!.post['x-error-reasons']).toContain('code_required');
  });

  it('has a tag with a description for each area, and each operation in one', () => {
    const names = document.tags.map(({ name }) => name);

    for (const { description } of document.tags) expect(description).toMatch(/\.$/);
    for (const { path, tags } of operations) expect([tags.length, names.includes(tags[0]!)], path).toEqual([1, true]);
  });

  it('lists exactly the statuses of each operation, each with its headers', () => {
    for (const { rest, isKeyed, isVersioned } of restProcedures) {
      const responses = responsesOf(document, document.paths[rest.path]!.post);
      expect(Object.keys(responses).map(Number).sort()).toEqual([rest.status, ...rest.errors].sort());
      for (const [status, { headers }] of Object.entries(responses)) {
        const names = [
          'X-RateLimit-Limit',
          'X-RateLimit-Remaining',
          'X-RateLimit-Reset',
          'X-Request-Id',
          'X-Deckhand-Version',
          ...(Number(status) >= 400 ? ['X-Error-Reason'] : []),
          ...(status === '401' ? ['WWW-Authenticate'] : []),
          ...(status === '429' ? ['Retry-After'] : []),
          ...(Number(status) < 400 && isVersioned ? ['ETag'] : []),
          ...(Number(status) < 400 && isKeyed ? ['Idempotent-Replayed'] : []),
        ];
        expect(Object.keys(headers ?? {})).toEqual(names);
      }
    }
  });

  it('has the header Idempotency-Key for each mutation except those for anyone and the proof, and for no query', () => {
    for (const { name, type, access, rest } of restProcedures) {
      const { parameters = [] } = document.paths[rest.path]!.post;
      const isListed = parameters.some((parameter) => parameter.name === 'Idempotency-Key');
      expect(isListed, name).toBe(type === 'mutation' && access !== 'anyone' && name !== 'account.prove');
    }
  });

  it('requires a token or a key with scopes for every operation except those for anyone, and a key for what is about itself', () => {
    const securityOf = (path: string) => document.paths[path]!.post.security;

    const ofKeys = operations.filter(({ path }) => /\/keys\/(rotate-)?self$/.test(path));
    expect(ofKeys.map(({ security }) => security)).toEqual([[{ ApiKey: [] }], [{ ApiKey: [] }]]);
    for (const { path, security } of operations.filter((operation) => !ofKeys.includes(operation))) {
      const [token, key, ...others] = security ?? [];
      const isForAnyone = restProcedures.find(({ rest }) => rest.path === path)!.access === 'anyone';
      expect(token, path).toEqual(isForAnyone ? undefined : { Authorization: [] });
      const isWithoutKeys = /^\/v1\/|\/(keys|identity-\w+)\//.test(path);
      expect(Object.keys(key ?? {}), path).toEqual(isWithoutKeys ? [] : ['ApiKey']);
      expect(others, path).toEqual([]);
    }
    expect(securityOf('/services/operations/v1/operations/cards/create')).toContainEqual({ ApiKey: ['cards:write'] });
    expect(securityOf('/services/operations/v1/operations/boards/list')).toContainEqual({ ApiKey: ['boards:read'] });
    expect(securityOf('/services/operations/v1/admin/master-cards/push')).toContainEqual({
      ApiKey: ['templates:write', 'admin'],
    });
  });

  it('has no example of a time to come that has passed', () => {
    const toCome = JSON.stringify(document).matchAll(/"(due_date|until|expires_at|trial_ends_at)\\*":\\*"(\d{4})-/g);

    expect(new Set(Array.from(toCome, ([, field, year]) => `${field} ${year}`))).toEqual(
      new Set(['due_date 2099', 'until 2099', 'expires_at 2099', 'trial_ends_at 2099']),
    );
  });

  it('says which value the dialog of the API page asks for', () => {
    expect(document.components.securitySchemes).toEqual({
      Authorization: { type: 'http', scheme: 'bearer', description: expect.stringContaining('`data.token`') },
      ApiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'dkh_…', description: expect.stringContaining('secret') },
    });
  });

  it('describes each operation, parameter and field, at any depth', () => {
    const isDescribed = ({ description, $ref }: Schema): boolean =>
      description !== undefined ||
      ($ref !== undefined && isDescribed(document.components.schemas[$ref.split('/').at(-1)!]!));
    const undescribed = schemas.flatMap(({ place, schema }) =>
      Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
        isDescribed(field) ? [] : `${place}/${name}`,
      ),
    );

    expect(undescribed).toEqual([]);
    for (const { path, summary, description, parameters = [] } of operations) {
      expect(summary, path).toBeTruthy();
      expect(description, path).toBeTruthy();
      expect(
        parameters.filter((parameter) => !('description' in parameter)),
        path,
      ).toEqual([]);
    }
  });

  it('says for each optional field of an update that it is not changed unless it is sent, and names no default', () => {
    const updates = operations.filter(({ path }) => /\/(update|configure)$/.test(path));
    const wrong = updates.flatMap(({ path, requestBody }) => {
      const { $ref } = requestBody!.content['application/json'].schema;
      const { properties, required = [] } = document.components.schemas[$ref!.split('/').at(-1)!]!;
      return Object.entries(properties!)
        .filter(([name]) => !required.includes(name))
        .filter(([name]) => !(path.includes('/identity-') && name in recentProof))
        .filter(
          ([, { description }]) =>
            !/^((?!if not sent).)* Not changed if not sent(; null clears it| or null)\.( Empty text is null\.)?$/.test(
              description!,
            ),
        )
        .map(([name]) => `${path} ${name}`);
    });

    expect(updates.length).toBeGreaterThan(8);
    expect(wrong).toEqual([]);
  });

  it('says of each field that takes an empty text as null that it does, and of no other one', () => {
    const isEmptyNull = (field: unknown) => (field as z.ZodType).safeParse('').data === null;
    const saysSo = (field: { description?: string } | undefined) =>
      / Empty text is null\.$/.test(field?.description ?? '');
    const compared = restProcedures.flatMap(({ name, input, rest }) => {
      const { requestBody, parameters = [] } = document.paths[rest.path]!.post;
      const { $ref } = requestBody?.content['application/json'].schema ?? {};
      const sent: Record<string, Schema> = {
        ...($ref && document.components.schemas[$ref.split('/').at(-1)!]!.properties),
      };
      const { list = '', row } = (input && manyRows.get(input)) ?? {};
      const rows = row ? Object.entries((row as z.ZodObject).shape) : [];
      return [
        ...Object.entries((input as z.ZodObject | undefined)?.shape ?? {}).map(([field, schema]) => {
          const described = sent[field] ?? parameters.find((parameter) => parameter.name === field);
          return { place: `${name} ${field}`, isNull: isEmptyNull(schema), isSaid: saysSo(described) };
        }),
        ...rows.map(([field, schema]) => {
          const described = sent[list]!.items!.properties![field];
          return { place: `${name} ${list} ${field}`, isNull: isEmptyNull(schema), isSaid: saysSo(described) };
        }),
      ];
    });

    expect(compared.filter(({ isNull, isSaid }) => isNull !== isSaid)).toEqual([]);
    expect(compared.filter(({ isSaid }) => isSaid).length).toBeGreaterThan(60);
  });

  it('has no limits of numbers in JavaScript, only of the service', () => {
    const isOpen = ({ type, minimum }: Schema) => type === 'integer' && Number(minimum) < -LARGEST_INTEGER - 1;
    const inRequests = schemas.filter(({ place }) => /^\/\w*Request\b/.test(place));

    expect(schemas.filter(({ schema }) => isOpen(schema))).toEqual([]);
    expect(inRequests.filter(({ schema }) => Number(schema.maximum) > LARGEST_INTEGER)).toEqual([]);
  });

  it('says who may call each operation: all master operations are for superadmins', () => {
    for (const { path, description } of operations) {
      expect(description, path).toMatch(/ (For|Requires) [^.]+\.$/);
      if (path.includes('/admin/')) expect(description, path).toMatch(/ For superadmins\.$/);
    }
  });

  it('has text as every header that is sent: generated clients pass them to fetch as they are', () => {
    const sent = operations.flatMap(({ parameters = [] }) =>
      parameters.filter((parameter) => parameter.in === 'header'),
    );

    expect(new Set(sent.map(({ name, schema }) => `${name} ${(schema as Schema).type}`))).toEqual(
      new Set(['X-Project-Id string', 'Idempotency-Key string', 'If-Match string']),
    );
  });

  it('has no closed choice in responses but fixed ones: a later version may store further values', () => {
    const inResponses = schemas.filter(({ place }) => !/^\/\w*Request\b/.test(place));
    const isText = ({ type, enum: choices }: Schema) => type === 'string' && !choices;
    const besideText = new Set(inResponses.flatMap(({ schema }) => (schema.anyOf?.some(isText) ? schema.anyOf : [])));
    const closed = inResponses
      .filter(({ schema }) => schema.enum && !besideText.has(schema))
      .map(({ place }) => /\/properties\/(\w+)(?!.*\/properties\/)/.exec(place)?.[1]);

    // Priorities are specified, and types of cards are not stored. Periods and roles are sent back in requests: a new one changes
    // the interface.
    expect([...new Set(closed)].sort()).toEqual(['card_type', 'period', 'priority', 'role']);
  });

  it('has no negative numbers but positions', () => {
    const isNegative = ({ type, minimum }: Schema) => type === 'integer' && !((minimum as number) >= 0);
    const names = schemas
      .filter(({ schema }) => isNegative(schema))
      .map(({ place }) => /\/properties\/(\w+)(?!.*\/properties\/)/.exec(place)?.[1]);

    expect([...new Set(names)].sort()).toEqual(['position', 'sort_order']);
  });

  it('shows what the demo member gets as the example of authenticate', () => {
    const { example } = document.paths['/v1/authenticate']!.post.responses[200]!.content!['application/json'];
    const { body } = answers['authenticate: member signs in'];

    expect(example).toEqual({ ...body, data: { ...body.data, token: expect.stringMatching(/^eyJ/) } });
  });

  it('describes version_id of deprecate in the words of the specification', () => {
    const { version_id } = document.components.schemas.ThemesDeprecateVersionRequest!.properties!;

    expect(version_id!.description).toMatch(/^The theme version project id; must be approved\. /);
  });

  it('names no schema like a type of JavaScript, which generated code would hide', () => {
    const names = Object.keys(document.components.schemas);

    expect(names.filter((name) => name in globalThis)).toEqual([]);
  });

  it('names each call of the typed client', () => {
    const calls = restProcedures.map(({ name, type }) => `${name}.${type === 'query' ? 'query' : 'mutate'}`);

    expect(operations.map((operation) => operation['x-client-call']).sort()).toEqual(calls.sort());
  });

  it('contains no internal names of its generators', () => {
    expect(JSON.stringify(document)).not.toMatch(
      /x-sent-as-text|x-empty-is-null|x-has-one-field|error\.(BAD|INTERNAL)/,
    );
  });
});
