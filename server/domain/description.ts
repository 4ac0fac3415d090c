import { invalid } from '../errors.ts';
import { refuseHtml, sanitizeHtml } from '../security/html.ts';

/**
 * Sanitises the HTML in the description of a card or master card; plain text is stored as sent. Undefined stays undefined; an
 * empty result becomes null.
 */
export async function cleanDescription(description: string | null | undefined): Promise<string | null | undefined> {
  if (description == null) return description;
  const refused = refuseHtml(description);
  if (refused) throw invalid({ description: refused });
  return (await sanitizeHtml(description)).trim() || null;
}
