import { startFailure } from './startFailure.ts';

/** The environment, with the file `.env` of the working directory. */
export function environment(): NodeJS.ProcessEnv {
  try {
    process.loadEnvFile();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw startFailure(`.env can't be read: ${(error as Error).message}.`);
  }
  return process.env;
}
