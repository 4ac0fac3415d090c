import { Migration } from '@mikro-orm/migrations';
import { refuseHtml, sanitizeHtml } from '../../security/html.ts';

type Described = { id: number; description: string };

/** Sanitises the descriptions of copies that projects changed, which were stored as sent. Those of master cards already are. */
export class Migration20261115100300_clean_descriptions extends Migration {
  override name = 'Migration20261115100300_clean_descriptions';

  override async up(): Promise<void> {
    await this.execute('set local statement_timeout = 0');
    for (let rows = await this.rowsAfter(0); rows.length > 0; rows = await this.rowsAfter(rows.at(-1)!.id)) {
      const cleaned = await Promise.all(
        rows.map(async ({ id, description }) => ({ id, description: await clean(description) })),
      );
      await this.execute(
        `update cards set description = nullif(cleaned.description, '')
        from jsonb_to_recordset(cast(? as jsonb)) as cleaned (id int, description text)
        where cards.id = cleaned.id and cards.description <> cleaned.description`,
        [JSON.stringify(cleaned)],
      );
    }
  }

  private async rowsAfter(id: number): Promise<Described[]> {
    const rows = await this.execute(
      `select c.id, c.description from cards c join cards m on m.id = c.master_card_id
      where c.id > ? and c.description ~ '[<>&]' and c.description is distinct from m.description
      order by c.id limit 100`,
      [id],
    );
    return rows as Described[];
  }
}

/** Escapes a description that is refused as HTML, so that it stays as text. */
const clean = async (description: string) =>
  (refuseHtml(description) ? escaped(description) : await sanitizeHtml(description)).trim();

const ENTITIES: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' };
const escaped = (text: string) => text.replace(/[<>&]/g, (sign) => ENTITIES[sign]!);
