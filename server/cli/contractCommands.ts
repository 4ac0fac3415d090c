import { z } from 'zod';
import type { Command } from './command.ts';

/** Commands that compare a service, or a document, with what callers rely on. */
export const CONTRACT_COMMANDS: Record<string, Command> = {
  contract: {
    does: 'Check a deployed service against the document of this version.',
    explains:
      'Calls every operation over REST and over RPC, and reports what is missing, what is not as documented, and where the two differ. Without --write it changes nothing: it reads, and sends calls that are refused. The exit code is 1 if something differs, 2 if the service can not be checked.',
    input: z.object({
      key: z.string().optional().meta({
        description:
          'The API key. Other users of this machine can see it: better set DECKHAND_KEY, or sign in with login.',
      }),
      write: z.boolean().optional().meta({
        description:
          'Also create, change and delete rows of its own, in a project of its own if the key may create one. They are removed at the end.',
      }),
      junit: z.string().optional().meta({ description: 'Write the results to this file as JUnit XML, too.' }),
    }),
    common: ['url', 'project'],
    run: async (given) => (await import('./contract.ts')).contract(given),
  },
  diff: {
    does: 'Compare two OpenAPI documents: what breaks callers, and what is new.',
    explains: 'Each document is a file or a URL. The exit code is 1 if a change can break a caller.',
    input: z.object({
      old: z.string().meta({ description: 'The document that callers know.' }),
      new: z.string().meta({ description: 'The document to compare it with.' }),
    }),
    operands: ['old', 'new'],
    common: [],
    run: async (given) => (await import('./diff.ts')).diff(given),
  },
};
