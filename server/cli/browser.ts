import { spawn } from 'node:child_process';

/** The program that opens an address, and its words. It is never a shell, which would act on characters of the address. */
export function openerFor(address: string, platform: string, browser = ''): [program: string, ...words: string[]] {
  const [program, ...words] = browser.split(' ').filter((word) => word !== '');
  if (program !== undefined) return [program, ...words, address];
  if (platform === 'darwin') return ['open', address];
  // `start` belongs to cmd, which is a shell.
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler', address];
  return ['xdg-open', address];
}

/** An opener that fails does so at once; one that is the browser itself runs on. */
const LONGEST_START_MILLISECONDS = 2000;

/** Opens an address. Returns what went wrong, or undefined. */
export function startBrowser(address: string, browser: string | undefined): Promise<string | undefined> {
  const [program, ...words] = openerFor(address, process.platform, browser);
  return new Promise((resolve) => {
    const child = spawn(program, words, { detached: true, stdio: 'ignore', shell: false });
    const timer = setTimeout(resolve, LONGEST_START_MILLISECONDS, undefined);
    const end = (problem: string | undefined) => {
      clearTimeout(timer);
      resolve(problem && `${program} ${problem}`);
    };
    child.on('error', ({ code, message }: NodeJS.ErrnoException) =>
      end(code === 'ENOENT' ? 'is not on this machine' : `can't be started (${message})`),
    );
    child.on('exit', (code) => end(code === 0 ? undefined : `ended with exit code ${code}`));
    child.unref();
  });
}
