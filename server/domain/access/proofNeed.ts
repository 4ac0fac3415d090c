import { PROOF_MINUTES } from '../../../shared/account.ts';
import { GRANTS_SCOPE } from './scopes.ts';

/**
 * When a procedure needs fresh proof: the password, and a code if a second factor is enabled, within the last minutes. This is for
 * whatever creates a secret or a right, or has data sent elsewhere, so that a stolen token is not enough.
 * - `always`.
 * - `inInput`: always, and its input has fields for the proof.
 * - For some inputs: what they do, in words, and which they are; without `isNeeded`, the domain finds out, and asks for it.
 */
// biome-ignore lint/suspicious/noExplicitAny: the input of this procedure
export type ProofNeed = 'always' | 'inInput' | { for: string; isNeeded?: (input: any) => boolean };

export const needsProof = (need: ProofNeed, input: unknown): boolean =>
  typeof need === 'string' || need.isNeeded?.(input) === true;

/** For descriptions. */
export function proofInWords(need: ProofNeed | undefined): string {
  if (need === undefined) return '';
  if (need === 'inInput')
    return ` Asks for the password, and for a code if a second factor is enabled, unless they were given within the last ${PROOF_MINUTES} minutes.`;
  const [when, then] = need === 'always' ? ['', ''] : [` for ${need.for}`, ' then'];
  return ` Needs fresh proof${when} (\`account.prove\`); an API key${then} needs the scope \`${GRANTS_SCOPE}\`.`;
}
