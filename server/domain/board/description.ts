import { invalid } from '../../../shared/errors.ts';
import { refuseHtml, sanitizeHtml } from '../../security/html.ts';
import { preparation } from '../access/preparation.ts';

type Described = { description?: string | null | undefined };
export type Sanitised = { html?: string | null | undefined; error?: string | undefined };

/** Sanitises a description as HTML. Errors are only returned: whether it is HTML at all depends on the card. */
export const sanitiseDescription = preparation(async (_: object, { description }: Described): Promise<Sanitised> => {
  if (description == null) return { html: description };
  const error = refuseHtml(description);
  if (error) return { error };
  const html = (await sanitizeHtml(description)).trim();
  return html === '' ? { error: 'has only HTML that is not allowed: nothing is left of it' } : { html };
});

/** The sanitised description of a master card or of a copy; other descriptions are plain text. */
export async function cleanDescription(
  context: Parameters<typeof sanitiseDescription>[0],
  sent: Described,
): Promise<string | null | undefined> {
  return descriptionOf(await sanitiseDescription(context, sent));
}

export function descriptionOf({ html, error }: Sanitised): string | null | undefined {
  if (error) throw invalid({ description: error });
  return html;
}
