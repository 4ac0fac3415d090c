import type { Locator, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasBrowser, newPage } from '../harness/browser.ts';
import * as board from '../harness/page.ts';

const { button, cardOf, cardsIn, choose, dialog, DOING, DONE, listOf, TO_DO, untilTold } = board;

const ADA = { name: 'Ada', email: 'ada@journey.test', password: 'a-password-of-ada' };
const GRACE = { name: 'Grace', email: 'grace@journey.test', password: 'a-password-of-grace' };
const PROJECT = 'New harbour';

describe.skipIf(!hasBrowser)('a new user', () => {
  const { givenStart, clientOf } = board.pageOfSuite();

  /** Two people with accounts; one of them owns a project without boards. */
  const givenPeople = async () => {
    const admin = clientOf('Admin');
    const { project } = await admin.projects.create.mutate({ platform_id: 1, name: PROJECT });
    for (const user of [ADA, GRACE]) await admin.users.create.mutate(user);
    await admin.members.add.mutate({ project_id: project.id, email: ADA.email, role: 'owner' });
  };

  it('makes a board, and works on it with a colleague', { timeout: 180_000 }, async () => {
    await givenPeople();
    const { page, problems } = await givenStart();
    const other = await newPage();

    await signIn(page, ADA);
    await makeBoard(page);
    await fillCard(page);
    const shared = page.url();
    await moveAndDelete(page);
    await invite(page);
    await accept(other, new URL(shared).origin);
    await other.goto(shared);
    await panelOf(other).getByText('Check the chain first').waitFor();
    expect(await other.title()).toBe(`Anchor · ${PROJECT} · Deckhand`);
    await changeInTurns(page, other, shared);

    expect(problems).toEqual([]);
  });
});

const panelOf = (page: Page) => page.locator('.panel');
const field = (page: Page, label: string) => panelOf(page).getByLabel(label);

async function signIn(page: Page, { name, email, password }: typeof ADA): Promise<void> {
  await button(page, 'Sign in').click();
  const form = dialog(page, 'Sign in');
  await form.getByLabel('E-mail address').fill(email);
  await form.getByLabel('Password').fill(password);
  await form.getByLabel('Password').press('Enter');
  await button(page, `Account of ${name}`).waitFor();
}

/** Three groups, and five cards in the first one. */
async function makeBoard(page: Page): Promise<void> {
  await button(page, 'New board').first().click();
  await dialog(page, 'New board').getByLabel('Title').fill('Voyage');
  await page.keyboard.press('Enter');
  for (const title of [TO_DO, DOING, DONE]) {
    await page.getByRole('textbox', { name: 'Add a group' }).fill(title);
    await page.keyboard.press('Enter');
    await untilTold(page, `Added the group “${title}”.`);
  }
  for (const title of ['Anchor', 'Chart', 'Compass', 'Rope', 'Sail']) await board.addCard(page, TO_DO, title);
  expect(await page.title()).toBe(`Voyage · ${PROJECT} · Deckhand`);
}

/** Owner, a new tag, due date and a comment. */
async function fillCard(page: Page): Promise<void> {
  await cardOf(page, 'Anchor').locator('.title').click();
  await field(page, 'Owner').selectOption(ADA.name);
  await field(page, 'Tag').selectOption('New tag…');
  await dialog(page, 'Tag').getByLabel('Name').fill('Heavy');
  await button(page, 'Use #b3261e').click();
  await button(page, 'Create it').click();
  await dialog(page, 'Tag').waitFor({ state: 'hidden' });
  await field(page, 'Due').fill('2031-03-10');
  await field(page, 'Due').press('Enter');
  await field(page, 'Write a comment').fill('Check the chain first');
  await button(page, 'Comment').click();
  await page.locator('.comment', { hasText: 'Check the chain first' }).waitFor();
  const chips = cardOf(page, 'Anchor').locator('.chips > *');
  await expect.poll(() => chips.allTextContents()).toEqual(['Heavy', 'Due Mar 10, 2031', 'Owner: AdaA']);
}

async function moveAndDelete(page: Page): Promise<void> {
  await button(page, 'Move to…').click();
  const move = dialog(page, 'Move “Anchor”');
  await move.getByLabel('Group').selectOption(DONE);
  await move.getByLabel('Place').selectOption('At the top');
  await move.getByRole('button', { name: 'Move', exact: true }).click();
  await untilTold(page, 'Moved “Anchor” to Done, place 1 of 1.');
  await button(page, 'Close the card').click();
  await cardOf(page, 'Rope').dragTo(listOf(page, DOING));
  await untilTold(page, 'Moved “Rope” to In progress, place 1 of 1.');
  await choose(page, 'Actions for Sail', 'Delete');
  await untilTold(page, 'Deleted “Sail”.');
  expect(await cardsIn(page, TO_DO)).toEqual(['Chart', 'Compass']);
  await button(page, 'Undo').click();
  await untilTold(page, '“Sail” is back.');
  await expect.poll(() => cardsIn(page, TO_DO)).toEqual(['Chart', 'Compass', 'Sail']);
}

async function invite(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Members' }).click();
  await page.getByLabel('E-mail address', { exact: true }).fill(GRACE.email);
  await button(page, 'Invite').click();
  await untilTold(page, `${GRACE.email} is invited.`);
}

async function accept(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/account`);
  await signIn(page, GRACE);
  await page.getByRole('button', { name: /^Accept/ }).click();
  await untilTold(page, `You are now a member of ${PROJECT}.`);
  await cardOf(page, 'Anchor').waitFor();
}

/** Each sees what the other one changes. */
async function changeInTurns(one: Page, other: Page, shared: string): Promise<void> {
  await one.goto(shared);
  await field(one, 'Title').waitFor();
  await changesOf(one, other, '12 kg');
  await changesOf(other, one, '15 kg');
}

async function changesOf(author: Page, reader: Page, weight: string): Promise<void> {
  const send = async (input: Locator, title: string) => {
    await input.fill(title);
    await input.press('Enter');
    await cardOf(reader, title).waitFor();
  };
  await send(field(author, 'Title'), `Anchor of ${weight}`);
  await expect.poll(() => field(reader, 'Title').inputValue()).toBe(`Anchor of ${weight}`);
  await send(board.inputOf(author, DOING), `Crane for ${weight}`);
}
