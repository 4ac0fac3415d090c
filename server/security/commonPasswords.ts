import { readFileSync } from 'node:fs';

/** The error message for a password that attackers try first; undefined if it is fine. */
export function refusePassword(password: string, { email, name }: { email: string; name: string }): string | undefined {
  const typed = simplify(password);
  const ofUser = [email, email.replace(/@.*/s, ''), name].map(simplify);
  if (ofUser.includes(typed)) return 'must not be the e-mail address or the name';
  if (commonPasswords().has(typed)) return 'is one of the most common passwords: choose one that nobody would guess';
  return undefined;
}

const simplify = (text: string) => text.normalize('NFKC').toLowerCase().replaceAll(/\s/g, '');

let known: Set<string> | undefined;

function commonPasswords(): Set<string> {
  known ??= new Set([...readList(), 'demo-password']);
  return known;
}

function readList(): string[] {
  const lines = readFileSync(new URL('commonPasswords.txt', import.meta.url), 'utf8').split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}
