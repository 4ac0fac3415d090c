import { describe, expect, it } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDirectory } from '../harness/process.ts';
import { givenTerminal } from '../harness/terminal.ts';
import { startNode } from '../harness/usedService.ts';

/** From an empty database to a pushed template, with the command line alone. */

describe('a team that has only the command line', () => {
  const password = 'a good password';

  /** Runs commands of one person; each must succeed. */
  const personWith = (settings: Record<string, string>) => {
    const run = async (words: string[], typed: string[] = []) => {
      const answer = await runCommandLine(words, () => settings, givenTerminal(typed));
      expect(answer, words.join(' ')).toMatchObject({ exitCode: 0 });
      return answer.printed!;
    };
    return {
      sees: (words: string, ...typed: string[]) => run(words.split(' '), typed),
      gets: async (words: string) => JSON.parse(await run([...words.split(' '), '--json'])),
    };
  };

  it('gets from an empty database to a closed card and a pushed template', async () => {
    const DATA_DIR = await givenDirectory();
    const operator = personWith({ DATA_DIR });
    const create = (name: string) => `users create --name ${name} --email ${name}@a.test`;
    await operator.sees('migrate');
    await operator.sees(`${create('admin')} --superadmin`, password, password);
    const { url, stop } = await startNode({ DATA_DIR });
    const signedIn = async (name: string) => {
      const person = personWith({ HOME: await givenDirectory(), DECKHAND_URL: url });
      await person.sees(`login --email ${name}@a.test`, password);
      return person;
    };

    const admin = await signedIn('admin');
    const { platform } = await admin.gets('platforms create --name Customer');
    const { project } = await admin.gets(`projects create --platform-id ${platform.id} --name Site --tools onboarding`);
    for (const role of ['owner', 'member']) {
      await admin.sees(create(role), password, password);
      await admin.sees(`members add --project-id ${project.id} --email ${role}@a.test --role ${role}`);
    }

    const owner = await signedIn('owner');
    expect((await owner.gets('projects list-own')).projects).toMatchObject([{ id: project.id, role: 'owner' }]);
    const { board } = await owner.gets('boards create --title Launch');
    const { group: toDo } = await owner.gets(`groups create --board-id ${board.id} --title Open`);
    const { group: done } = await owner.gets(`groups create --board-id ${board.id} --title Done`);
    const { members } = await owner.gets('members list');
    const assignee = members.find(({ email }: { email: string }) => email === 'member@a.test').user_id;
    const { card } = await owner.gets(`cards create --title Write --group-id ${toDo.id}`);
    await owner.sees(`cards update --id ${card.id} --owner-id ${assignee} --due-date 2099-01-31`);

    const member = await signedIn('member');
    await member.sees(`comments create --card-id ${card.id} --comment Ready.`);
    await member.sees(`cards move --id ${card.id} --group-id ${done.id}`);
    await member.sees(`cards update --id ${card.id} --status closed`);

    expect(await owner.sees(`comments list --card-id ${card.id}`)).toContain(`Ready.  (user_id ${assignee}, `);
    expect(await owner.sees(`boards get --id ${board.id}`)).toBe(`${board.id}  Launch

  ${toDo.id}  Open

  ${done.id}  Done
    id  title  status  owner_id  due_date
    ${card.id}   Write  closed  ${assignee}         2099-01-31T00:00:00.000Z`);

    const { board: template } = await admin.gets('master-boards create --title Welcome --tool-key onboarding');
    const { group } = await admin.gets(`master-groups create --board-id ${template.id} --title Start`);
    const { card: masterCard } = await admin.gets(`master-cards create --group-id ${group.id} --title Look`);
    const preview = await admin.sees(`master-boards preview-sync --board-id ${template.id}`);
    expect(preview).toMatch(/\n1 +Site +added +1 +1 +1 +/);

    const synced = await admin.sees(`master-boards sync --board-id ${template.id} --yes`);
    expect(synced).toMatch(/^1 of 1 project changed, 0 without access; 1 card added, .*\.\nReport: /);
    const boards = (await owner.gets('boards list')).boards as { id: number; title: string }[];
    const seesCopy = `boards get --id ${boards.find(({ title }) => title === 'Welcome')!.id}`;
    expect(await owner.sees(seesCopy)).toMatch(/\d {3}Look /);

    await admin.sees(`master-cards update --id ${masterCard.id} --title Learn`);
    const pushed = await admin.sees(`master-cards push --card-id ${masterCard.id}`, 'y');
    await admin.sees(`master-boards update --id ${template.id} --title Hello`);
    await admin.sees(`master-boards push --board-id ${template.id}`, 'y');
    expect(await owner.sees(seesCopy)).toMatch(/^\d+ {2}Hello\n.*\d {3}Learn /s);
    expect(await admin.sees(/^Report: npx deckhand (.*)$/m.exec(pushed)![1]!)).toMatch(/\n1 +Site +updated /);
    await stop();
  });
});
