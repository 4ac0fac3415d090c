import { writeFile } from 'node:fs/promises';
import { type Case, problemsOf, type Report } from '../contract/report.ts';
import { checkContract, NotCheckable } from '../contract/run.ts';
import { counted } from '../runtime/count.ts';
import { startFailure } from '../runtime/startFailure.ts';
import type { Given, Outcome } from './command.ts';
import { junitOf } from './junit.ts';
import { misuse } from './misuse.ts';
import { credentialFor } from './onService.ts';
import { chosenUrl } from './url.ts';

type Options = { key?: string; write?: boolean; receiver?: string; receiver_port?: number; junit?: string };

/** Checks a service. Ctrl-C ends the checks, and what they created is removed first. */
export async function contract({ input, chosen, environment, terminal }: Given): Promise<Outcome> {
  const { key, write = false, junit, ...webhooks } = input as Options;
  const url = chosenUrl({ chosen, environment });
  if (url === undefined) throw misuse('--url is missing.');
  const token = key ?? (await storedToken(url, environment));
  // Otherwise the error of the request would show the key.
  if (!/^[\x21-\x7e]+$/.test(token)) throw misuse('The key has characters that no key has.');
  if (junit !== undefined) await writeReport(junit, junitOf({ url, cases: [UNFINISHED] }));

  const interruption = new AbortController();
  const endInterrupts = terminal.onInterrupt(() => interruption.abort());
  try {
    const report = await checkContract(
      { url, token, projectId: chosen.project },
      {
        isWriting: write,
        ...receiverOf(webhooks),
        signal: interruption.signal,
        onProgress: terminal.update,
        announce: (line) => {
          terminal.update('');
          terminal.write(`${line}\n`);
        },
      },
    );
    if (junit !== undefined) await writeReport(junit, junitOf(report));
    const problems = problemsOf(report);
    return { result: { ...report, problems }, message: textOf(report), hasFailed: problems.length > 0 };
  } catch (error) {
    if (error instanceof NotCheckable) throw misuse(error.message);
    if (interruption.signal.aborted) throw startFailure('Interrupted.');
    throw error;
  } finally {
    endInterrupts();
    terminal.update('');
  }
}

/** Behind a tunnel, this process listens at another port than its address has. */
function receiverOf({ receiver: url, receiver_port: port }: Options) {
  if (url === undefined && port !== undefined) throw misuse('--receiver-port needs --receiver.');
  if (url === undefined) return {};
  if (!/^https?:/.test(url) || !URL.canParse(url)) throw misuse(`--receiver ${url} is not a URL.`);
  const { port: named, protocol } = new URL(url);
  return { receiver: { url, port: port ?? (Number(named) || (protocol === 'https:' ? 443 : 80)) } };
}

/** Without a key or login, the service can't be checked: the exit code is 2, as for a wrong key. */
async function storedToken(url: string, environment: Given['environment']): Promise<string> {
  const { token } = await credentialFor(url, environment).catch((error: Error) => {
    throw misuse(error.message);
  });
  return token;
}

/** What the JUnit file has until the checks end: CI systems reject an empty file. */
const UNFINISHED: Case = { check: 'contract', call: 'all checks', problems: ['The checks did not end.'] };

/** Before the checks, too: they take a while, and a file that can't be written should not be found at their end. */
async function writeReport(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: Error) => {
    throw misuse(`--junit ${file} can't be written: ${error.message}.`);
  });
}

function textOf(report: Report): string {
  const { url, version, cases, requests, operations, denied, unseen, left } = report;
  const problems = problemsOf(report);
  const lines = problems.map(({ problem, check, calls }) => `- ${problem}\n  ${check}: ${shortened(calls)}`);
  const notCalled = Object.entries(denied).map(([reason, names]) => `Not allowed (${reason}): ${shortened(names)}`);
  return [
    `${url}${version === undefined ? '' : `, version ${version}`}: ${operations.found} of ${counted(operations.known, 'operation')}.`,
    ...lines,
    ...notCalled,
    ...Object.entries(unseen).map(
      ([reason, names]) =>
        `No success was seen of ${counted(names.length, 'operation')} (${reason}): ${shortened(names)}`,
    ),
    ...left.map((row) => `Not removed: ${row}`),
    `${counted(cases.length, 'check')}, ${counted(requests, 'request')}: ${problems.length === 0 ? 'nothing differs' : counted(problems.length, 'difference')}.`,
  ].join('\n');
}

const shortened = (names: string[]) =>
  names.length <= MOST_NAMES
    ? names.join(', ')
    : `${names.slice(0, MOST_NAMES).join(', ')} and ${names.length - MOST_NAMES} more`;
const MOST_NAMES = 8;
