import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDemoService } from '../harness/demo.ts';
import { givenDemoDirectory, givenDirectory } from '../harness/process.ts';
import { type FakeTerminal, givenTerminal } from '../harness/terminal.ts';

/** Template files of the demo data, on a service and on a database. */

let service: Awaited<ReturnType<typeof givenDemoService>>;
let HOME: string;
let file: string;
beforeAll(async () => {
  [service, HOME] = await Promise.all([givenDemoService(), givenDirectory()]);
  file = join(HOME, 'template.yaml');
  await command(`login --email admin@demo.test`, givenTerminal(['demo-password']));
});
afterAll(() => service.close());

const PROGRAM = { isPerson: false };
const command = (words: string, terminal: FakeTerminal = givenTerminal([], PROGRAM)) =>
  runCommandLine([...words.split(' '), '--url', service.url], () => ({ HOME }), terminal);

const planned = async () => JSON.parse((await command(`templates plan -f ${file} --json`)).printed!).plan as string;

/** Exports the demo board, and changes the text of the file. */
async function givenFile(change: (text: string) => string = (text) => text): Promise<void> {
  await command(`templates export --board-id 1 --file ${file}`);
  await writeFile(file, change(await readFile(file, 'utf8')));
}

const RENAMED = (text: string) => text.replace(/title: Look around.*/, `title: Look around ${Math.random()}`);

describe('templates plan', () => {
  it('0 for an exported file', async () => {
    await givenFile();

    expect(await command(`templates plan --file ${file}`)).toEqual({
      exitCode: 0,
      printed: 'Nothing to change: the master board is as in the file.',
    });
    expect((await command('templates export --board-id 1')).printed).toBe((await readFile(file, 'utf8')).trimEnd());
  });

  it('3 for changes, with a line for each and the next command', async () => {
    const added = '    - key: last\n      title: Last steps\n';
    await givenFile(
      (text) => `${text.replace('Get started', 'Start').replace(/ {8}- key: onboarding-5.*/s, '')}${added}`,
    );

    const { exitCode, printed } = await command(`templates plan -f ${file}`);

    expect(exitCode).toBe(3);
    expect(printed!.split('\n')).toEqual([
      '~ group group-1: title "Get started" → "Start"',
      '+ group last "Last steps"',
      '- card onboarding-5 "Publish the first page"',
      '',
      `Apply it: npx deckhand templates apply --file ${file} --plan ${await planned()} --url ${service.url}`,
    ]);
  });

  it('4 for a card of another master board', async () => {
    await givenFile((text) => text.replace('key: board-1', 'key: another'));

    expect(await command(`templates plan -f ${file}`)).toEqual({
      exitCode: 4,
      complaint: expect.stringContaining('groups.0.cards.0.key belongs to another master board: onboarding-1.'),
    });
  });

  it('2 for an unknown key, and for a file that is not YAML', async () => {
    await givenFile((text) => text.replace('tool_key:', 'tool_kye:'));
    expect(await command(`templates plan -f ${file}`)).toEqual({
      exitCode: 2,
      complaint: expect.stringMatching(
        /^template\.board\.tool_kye is not a known field: did you mean tool_key\?\nSee /,
      ),
    });

    await writeFile(file, 'board: [');
    expect(await command(`templates plan -f ${file}`)).toMatchObject({ exitCode: 2 });
  });
});

describe('templates apply', () => {
  it('2 without a plan, --yes or somebody to ask, and for a note without a release', async () => {
    await givenFile(RENAMED);

    expect(await command(`templates apply -f ${file}`)).toMatchObject({ exitCode: 2 });
    expect(await command(`templates apply -f ${file} --yes --note x`)).toMatchObject({ exitCode: 2 });
    expect(await command(`templates plan -f ${file}`)).toMatchObject({ exitCode: 3 });
  });

  it('shows the changes and asks a person; nothing changes unless the answer is yes', async () => {
    await givenFile(RENAMED);
    const [no, yes] = [givenTerminal(['']), givenTerminal(['y'])];

    expect(await command(`templates apply -f ${file}`, no)).toEqual({ exitCode: 1, complaint: 'Nothing was changed.' });
    expect(no.shown).toEqual([expect.stringMatching(/^~ card onboarding-1: title /), 'Apply this? [y/N] ']);
    expect(await command(`templates apply -f ${file}`, yes)).toMatchObject({
      exitCode: 0,
      printed: 'Applied 1 change.\nProjects get this with a sync, or with the rollout of a release.',
    });
  });

  it('applies the plan, 4 and no change if it is outdated, 0 once more if all is done', async () => {
    await givenFile(RENAMED);
    const plan = await planned();
    const apply = `templates apply -f ${file} --plan ${plan}`;

    await command('master-cards update --id 2 --title Changed');
    expect(await command(apply)).toEqual({
      exitCode: 4,
      complaint: `The plan ${plan} is outdated. Nothing was changed. Run templates plan again.`,
    });

    await givenFile(RENAMED);
    const current = `templates apply -f ${file} --plan ${await planned()}`;
    expect(await command(current)).toMatchObject({
      exitCode: 0,
      printed: expect.stringContaining('Applied 1 change.'),
    });
    expect(await command(current)).toMatchObject({ exitCode: 0, printed: expect.stringMatching(/^Nothing to change/) });
  });

  it('on a database: creates a board, and publishes it once', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const onDatabase = (words: string) =>
      runCommandLine(words.split(' '), () => ({ DATA_DIR }), givenTerminal([], PROGRAM));
    await writeFile(file, 'board:\n  key: new\n  title: New\n  groups:\n    - {key: one, title: One}\n');
    const apply = `templates apply -f ${file} --yes --publish --note First`;

    expect(await onDatabase(apply)).toEqual({
      exitCode: 0,
      printed: '+ board new "New"\n+ group one "One"\n\nApplied 2 changes.\nPublished release 1.',
    });
    expect(await onDatabase(apply)).toMatchObject({ exitCode: 0, printed: expect.stringContaining('Release 1 has') });
    expect(await onDatabase(`templates plan -f ${file}`)).toMatchObject({ exitCode: 0 });
  });
});
