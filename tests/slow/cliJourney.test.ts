import { afterAll, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDirectory, removeProcesses, type StartedService, startService } from '../harness/process.ts';
import { givenTerminal } from '../harness/terminal.ts';

/** From an empty database to a pushed template, with the command line alone. */

describe('a team that has only the command line', () => {
  const password = 'a good password';
  let service: StartedService;

  afterAll(removeProcesses);

  /** Runs commands of one person; each must succeed. */
  const personWith = (settings: Record<string, string>) => {
    const run = async (words: string[], typed: string[] = []) => {
      const answer = await runCommandLine(words, () => settings, givenTerminal(typed));
      expect(answer, words.join(' ')).toMatchObject({ exitCode: 0 });
      return answer.printed!;
    };
    return {
      sees: run,
      gets: async (words: string[], typed?: string[]) => JSON.parse(await run([...words, '--json'], typed)),
    };
  };

  async function signedIn(email: string) {
    const person = personWith({ HOME: await givenDirectory(), DECKHAND_URL: service.url });
    await person.sees(['login', '--email', email], [password]);
    return person;
  }

  it('gets from an empty database to a closed card and a pushed template', async () => {
    const DATA_DIR = await givenDirectory();
    const operator = personWith({ DATA_DIR });
    await operator.sees(['migrate']);
    const { platform } = await operator.gets(['platforms', 'create', '--name', 'A customer']);
    const { project } = await operator.gets([
      ...['projects', 'create', '--platform-id', String(platform.id), '--name', 'Their site', '--tools', 'onboarding'],
    ]);
    for (const [email, ...rights] of [['admin@a.test', '--superadmin'], ['owner@a.test'], ['member@a.test']]) {
      await operator.sees(['users', 'create', '--name', email!, '--email', email!, ...rights], [password, password]);
    }
    for (const role of ['owner', 'member']) {
      const member = ['--email', `${role}@a.test`, '--role', role];
      await operator.sees(['members', 'add', '--project-id', String(project.id), ...member]);
    }
    service = await startService({ DATA_DIR });

    const owner = await signedIn('owner@a.test');
    expect((await owner.gets(['projects', 'list-own'])).projects).toMatchObject([{ id: project.id, role: 'owner' }]);
    const { board } = await owner.gets(['boards', 'create', '--title', 'Launch plan']);
    const group = async (title: string) =>
      (await owner.gets(['groups', 'create', '--board-id', String(board.id), '--title', title])).group.id as number;
    const [toDo, done] = [await group('To do'), await group('Done')];
    const { members } = await owner.gets(['members', 'list']);
    const assignee = members.find(({ email }: { email: string }) => email === 'member@a.test').user_id;
    const { card } = await owner.gets(['cards', 'create', '--title', 'Write the post', '--group-id', String(toDo)]);
    const id = String(card.id);
    await owner.sees(['cards', 'update', '--id', id, '--owner-id', String(assignee), '--due-date', '2099-01-31']);

    const member = await signedIn('member@a.test');
    await member.sees(['comments', 'create', '--card-id', id, '--comment', 'It is ready.']);
    await member.sees(['cards', 'move', '--id', id, '--group-id', String(done)]);
    await member.sees(['cards', 'update', '--id', id, '--status', 'closed']);

    expect(await owner.sees(['comments', 'list', '--card-id', id])).toContain(`It is ready.  (user_id ${assignee}, `);
    expect(await owner.sees(['boards', 'get', '--id', String(board.id)])).toBe(`${board.id}  Launch plan

  ${toDo}  To do

  ${done}  Done
    id  title           status  owner_id  due_date
    ${id}   Write the post  closed  ${assignee}         2099-01-31T00:00:00.000Z`);

    const admin = await signedIn('admin@a.test');
    const template = await admin.gets(['master-boards', 'create', '--title', 'Welcome', '--tool-key', 'onboarding']);
    const onTemplate = ['--board-id', String(template.board.id)];
    const start = await admin.gets(['master-groups', 'create', ...onTemplate, '--title', 'Start']);
    const inGroup = ['--group-id', String(start.group.id)];
    const masterCard = (await admin.gets(['master-cards', 'create', ...inGroup, '--title', 'Look around'])).card;
    const preview = await admin.sees(['master-boards', 'preview-sync', ...onTemplate]);
    expect(preview).toMatch(/\n1 +Their site +added +1 +1 +1 +/);

    const synced = await admin.sees(['master-boards', 'sync', ...onTemplate, '--yes']);
    expect(synced).toMatch(/^1 of 1 project changed, 0 without access; 1 card added, .*\.\nReport: /);
    const boards = (await owner.gets(['boards', 'list'])).boards as { id: number; title: string }[];
    const copy = String(boards.find(({ title }) => title === 'Welcome')!.id);
    expect(await owner.sees(['boards', 'get', '--id', copy])).toContain('Look around');

    await admin.sees(['master-cards', 'update', '--id', String(masterCard.id), '--title', 'Look around you']);
    const push = ['master-cards', 'push', '--card-id', String(masterCard.id)];
    const pushed = await admin.sees(push, ['y']);
    expect(await owner.sees(['boards', 'get', '--id', copy])).toContain('Look around you');
    await admin.sees(['master-boards', 'update', '--id', String(template.board.id), '--title', 'Welcome aboard']);
    await admin.sees(['master-boards', 'push', ...onTemplate], ['y']);
    expect(await owner.sees(['boards', 'get', '--id', copy])).toMatch(/^\d+ {2}Welcome aboard\n/);
    const report = /^Report: npx deckhand (.*)$/m.exec(pushed)![1]!;
    expect(await admin.sees(report.split(' '))).toMatch(/\n1 +Their site +updated /);
  });
});
