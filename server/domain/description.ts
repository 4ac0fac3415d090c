import { invalid } from '../errors.ts';
import { refuseHtml, sanitizeHtml } from '../security/html.ts';
import { preparation } from './preparation.ts';

type Described = { description?: string | null | undefined };

/**
 * Sanitises the HTML in the description of a card or master card; plain text is stored as sent. Undefined stays undefined; an
 * empty result becomes null.
 */
export const cleanDescription = preparation(async (_: object, { description }: Described) => {
  if (description == null) return description;
  const refused = refuseHtml(description);
  if (refused) throw invalid({ description: refused });
  return (await sanitizeHtml(description)).trim() || null;
});
