import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { commentAt, undocumented } from '../harness/docComments.ts';
import { compile, givenInstalledClient, strictly } from '../harness/packedClient.ts';
import { removeProcesses } from '../harness/process.ts';

/** A new project with the package installed. */
let project: string;
let typesOf: (file: string) => Promise<string>;

beforeAll(async () => {
  project = await givenInstalledClient();
  typesOf = (file) => readFile(join(project, 'node_modules/deckhand-client', file), 'utf8');
}, 60_000);
afterAll(removeProcesses);

describe('the types of the packed client', () => {
  it('have a comment on everything that is exported, and on its members', () => {
    const entries = ['client', 'router'].map((name) => join(project, `node_modules/deckhand-client/${name}.d.ts`));

    expect(undocumented(entries)).toEqual([]);
  });

  it('show the comments where a procedure is called', async () => {
    const file = join(project, 'call.ts');
    await writeFile(
      file,
      `import { createClient } from 'deckhand-client';
const client = createClient({ url: '' });
export const created = await client.as({ projectId: 2 }).cards.create.mutate({ title: 'Typed' });
export const due = created.card.due_date;
for await (const tag of client.tags.list.each()) console.log(tag.color);
`,
    );

    expect(commentAt(file, 'client.as({ projectId: 2 }).cards.create')).toContain('Requires the role member.');
    expect(commentAt(file, 'created.card.due_date')).toBe('When it is due.');
    expect(commentAt(file, 'client.tags.list')).toMatch(/^List tags\.\n\nThe tags of the project in order/);
    expect(commentAt(file, 'tag.color')).toBe('Its color.');
  });

  it('say what a method does, who may call it, and what an API key needs', async () => {
    const types = (await typesOf('procedures.d.ts')).replaceAll(/^ *(\*(?!\/) ?)?/gm, '');

    expect(types).toContain(`/**
Delete a comment.

Deletes a comment with all its replies; only for its author or an owner.

Requires the role member. An API key needs the scope \`comments:write\`.

@example
\`\`\`ts
await client.comments.delete.mutate({ id: 1 });
\`\`\`
*/
delete: Mutation<CommentsDeleteInput, CommentsDeleteOutput>;`);
    expect(types).toContain('For superadmins. An API key needs the scopes `templates:write` and `admin`.');
    expect(types).toContain("For every signed-in user. An API key can't call it.");
  });

  it.each([
    ['CardsListInput', 'limit', /1 to 200; 50 if not sent\. A page has fewer if they are long\. \*\//],
    ['CardsCreateInput', 'title', /\. 1 to 255 characters\. \*\//],
    ['CardsCreateInput', 'description', /At most 65,536 characters\. \*\//],
    ['SubscriptionsSetTrialInput', 'days', /14 if not sent\. 0 to 3,650\. \*\//],
    ['UsersCreateInput', 'kind', /`person` by default\. \*\//],
    ['AccountChangePasswordInput', 'new_password', /8 to 1,000 characters\. \*\//],
    ['ProjectsCreateInput', 'tools', /At most 100 elements, each 1 to 100 characters, `\[\]` by default\. \*\//],
  ])('name the limits and the default of %s.%s once', async (type, field, limits) => {
    const types = await typesOf('procedures.d.ts');
    const fields = types.slice(types.indexOf(`export type ${type} =`));
    const [text = ''] =
      fields.slice(0, fields.search(new RegExp(`^ +${field}\\??:`, 'm'))).match(/\/\*\*[^/]*\*\/\s*$/) ?? [];

    expect(text.trim().replaceAll(/\s*\n\s*\*? ?/g, ' ')).toMatch(limits);
  });

  it('do not speak of headers or options of the command line', async () => {
    const types = await typesOf('procedures.d.ts');

    expect(types.match(/.*(X-[A-Z]\w+|Idempotency-Key|(?<!-)--[a-z]\w+|\/v1\/).*/g) ?? []).toEqual([]);
  });

  it('have comments that TypeScript reads as written, with lines that fit on a screen', async () => {
    const lines = (await typesOf('procedures.d.ts')).split('\n').filter((line) => /^\s*\/?\*/.test(line));

    expect(lines.filter((line) => line.length > 130)).toEqual([]);
    // Outside of code these have a meaning in TSDoc.
    const inTags = lines.filter((line) => /[{}<>@]/.test(line.replaceAll(/`[^`]*`|@example/g, '')) && !isCode(line));
    expect(inTags).toEqual([]);
  });

  it('let the input be left out where no field is required, and only there', async () => {
    const calls = procedures.map(({ name, type, needsInput }) => {
      const call = `void client.${name}.${type === 'query' ? 'query' : 'mutate'}();`;
      return needsInput ? `// @ts-expect-error\n${call}` : call;
    });
    await writeFile(
      join(project, 'inputs.ts'),
      `import { createClient } from 'deckhand-client';\nconst client = createClient({ url: '' });\n${calls.join('\n')}`,
    );

    expect(await compile(project, strictly('nodenext'), 'inputs.ts')).toEqual([]);
  });

  it('have examples that compile', async () => {
    const types = await typesOf('procedures.d.ts');
    const examples = [...types.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!.replaceAll(/^\s*\* ?/gm, ''));
    const program = examples.map((code, index) => `export async function call${index}() {\n${code}}`);
    await writeFile(
      join(project, 'examples.ts'),
      `import { createClient } from 'deckhand-client';\nconst client = createClient({ url: '' });\n${program.join('\n')}`,
    );

    expect(examples).toHaveLength(procedures.length);
    expect(await compile(project, strictly('nodenext'), 'examples.ts')).toEqual([]);
  });
});

/** A line of an example: part of a call. */
const isCode = (line: string) => /await client\.|^\s*\*\s+( {2}\w+:|\}\);)/.test(line);
