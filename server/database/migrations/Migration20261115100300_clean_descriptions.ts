import { refuseHtml, sanitizeHtml } from '../../security/html.ts';
import { StepwiseMigration } from '../stepwiseMigration.ts';

type Described = { id: number; description: string };

/** Sanitises the descriptions of copies that projects changed, which were stored as sent. Those of master cards already are. */
export class Migration20261115100300_clean_descriptions extends StepwiseMigration {
  override name = 'Migration20261115100300_clean_descriptions';

  override async up(): Promise<void> {
    await this.inBatches('cards', async (run, first, last) => {
      const rows: Described[] = await run(
        `select c.id, c.description from cards c join cards m on m.id = c.master_card_id
        where c.id between ? and ? and c.description ~ '[<>&]' and c.description is distinct from m.description`,
        [first, last],
      );
      const cleaned = await Promise.all(
        rows.map(async ({ id, description }) => ({ id, description, clean: await clean(description) })),
      );
      const changed = cleaned.filter(({ description, clean }) => clean !== description);
      if (changed.length === 0) return;
      // Leaves a description that was changed since it was read: its node may be of this version.
      await run(
        `update cards set description = nullif(changed.clean, '')
        from jsonb_to_recordset(cast(? as jsonb)) as changed (id int, description text, clean text)
        where cards.id = changed.id and cards.description = changed.description`,
        [JSON.stringify(changed)],
      );
    });
  }
}

/** Escapes a description that is refused as HTML, so that it stays as text. */
const clean = async (description: string) =>
  (refuseHtml(description) ? escaped(description) : await sanitizeHtml(description)).trim();

const ENTITIES: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' };
const escaped = (text: string) => text.replace(/[<>&]/g, (sign) => ENTITIES[sign]!);
