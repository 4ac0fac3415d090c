import { invalid } from '../errors.ts';
import { refuseHtml, sanitizeHtml } from '../security/html.ts';

/** The description of a card as it is stored, master or not: sanitised. Absent stays absent, and what has nothing left is null. */
export async function cleanDescription(description: string | null | undefined): Promise<string | null | undefined> {
  if (description == null) return description;
  const refused = refuseHtml(description);
  if (refused) throw invalid({ description: refused });
  return (await sanitizeHtml(description)).trim() || null;
}
