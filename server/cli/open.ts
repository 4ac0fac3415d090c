import { startBrowser } from './browser.ts';
import type { Given, Outcome } from './command.ts';
import { callsOnService } from './onService.ts';
import { checkPage, type Page, pathOf } from './pagePath.ts';
import { serviceUrl } from './serviceUrl.ts';

type Options = Page & { print?: boolean };

/** Opens a page of the service in the browser, and prints its address in any case. The address never has a token. */
export async function openPage(given: Given): Promise<Outcome> {
  const { print = false, ...page } = given.input as Options;
  checkPage(page);
  const url = await serviceUrl(given);
  const callsIn = (project = given.chosen.project) =>
    callsOnService(url, { ...given, chosen: { ...given.chosen, ...(project && { project }) } }, () => true);

  const address = `${url}${await pathOf(page, callsIn)}`;
  if (print) return { result: { url: address }, message: address };
  const problem = await startBrowser(address, given.environment().BROWSER);
  if (problem !== undefined) given.terminal.write(`No browser was opened: ${problem}. ${REMEDY}\n`);
  return { result: { url: address }, message: address, hasFailed: problem !== undefined };
}

const REMEDY = 'Open the address yourself, or set BROWSER to a program that opens it.';
