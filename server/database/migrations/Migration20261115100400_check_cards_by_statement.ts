import { Migration } from '@mikro-orm/migrations';

type Reference = { name: string; columns: string[]; table: string; key: string[] };

/** The references of cards; a card has a reference if its first column is set. */
const REFERENCES: Reference[] = [
  { name: 'cards_master_card_id_foreign', columns: ['master_card_id'], table: 'cards', key: ['id'] },
  { name: 'cards_same_tenant_group', columns: ['group_id', 'project_id'], table: 'groups', key: ['id', 'project_id'] },
  {
    name: 'cards_same_tenant_platform',
    columns: ['project_id', 'platform_id'],
    table: 'projects',
    key: ['id', 'platform_id'],
  },
  { name: 'cards_created_by_foreign', columns: ['created_by'], table: 'users', key: ['id'] },
];

/**
 * Foreign keys are checked per row: five of them took more than half the time of a sync, which writes 300,000 copies that refer
 * to 60 templates, one user and 5,000 projects. Triggers now check all references of a statement at once, with the same
 * guarantees: the referenced row exists, is in the same project, is locked `for key share` until the transaction ends, and can
 * neither be deleted nor get another key. The errors have the same codes and constraint names. A master card must now be in a
 * master group, too. Tags and owners keep their foreign keys, since copies have neither.
 */
export class Migration20261115100400_check_cards_by_statement extends Migration {
  override name = 'Migration20261115100400_check_cards_by_statement';

  override up(): void {
    this.addSql(`alter table "cards" drop constraint "cards_group_id_foreign";`);
    for (const { name } of REFERENCES) this.addSql(`alter table "cards" drop constraint "${name}";`);
    // Only the removed foreign key needed it.
    this.addSql(`alter table "groups" drop constraint "groups_id_project_id_unique";`);

    this.addSql(checkFunction('cards_check_added', (columns) => `select distinct ${columns.join(', ')} from added`));
    this.addSql(
      `create trigger cards_check_added after insert on cards referencing new table as added for each statement execute function cards_check_added();`,
    );
    const columns = [...new Set(REFERENCES.flatMap((reference) => reference.columns))];
    this.addSql(
      checkFunction(
        'cards_check_changed',
        (columns) => `select ${columns.map((column) => `new.${column}`).join(', ')}`,
      ),
    );
    this.addSql(
      `create trigger cards_check_changed after update of ${columns.join(', ')} on cards for each row when (${differ(columns)}) execute function cards_check_changed();`,
    );
    for (const reference of REFERENCES) this.keepReferredTo(reference);
  }

  /** Refuses to delete a row that cards refer to, or to change its key. */
  private keepReferredTo({ name, columns: [column], table, key }: Reference): void {
    this.addSql(`
      create function ${name}() returns trigger language plpgsql as $$
      begin
        -- Their snapshot may be older than a card, which would then not be found.
        if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
          raise feature_not_supported using message = 'What cards refer to is removed in read committed transactions only.';
        end if;
        if tg_op = 'TRUNCATE' then
          perform from cards where ${column} is not null limit 1;
        else
          -- Not \`exists\`: expecting to find one soon, it would be planned without the index.
          perform from cards where ${column} = old.id;
        end if;
        if found then
          raise foreign_key_violation using table = '${table}', constraint = '${name}',
            message = 'update or delete on table "${table}" violates foreign key constraint "${name}" on table "cards"';
        end if;
        return null;
      end $$;`);
    this.addSql(
      `create trigger ${name}_truncate after truncate on ${table} for each statement execute function ${name}();`,
    );
    this.addSql(`create trigger ${name}_delete after delete on ${table} for each row execute function ${name}();`);
    this.addSql(
      `create trigger ${name}_update after update of ${key.join(', ')} on ${table} for each row when (${differ(key)}) execute function ${name}();`,
    );
  }
}

const differ = (columns: string[]) =>
  columns.map((column) => `old.${column} is distinct from new.${column}`).join(' or ');

/**
 * Checks the references of cards; `named` selects columns of the written rows. Without sequential scans, since the plan is
 * cached while the tables grow.
 */
const checkFunction = (name: string, named: (columns: string[]) => string) => `
  create function ${name}() returns trigger language plpgsql set enable_seqscan = off as $$
  declare
    broken text;
  begin
    select reference into broken from (
      ${REFERENCES.map((reference) => brokenReference(reference, named(reference.columns))).join(' union all ')}
    ) as broken limit 1;
    if found then
      raise foreign_key_violation using table = 'cards', constraint = broken,
        message = format('insert or update on table "cards" violates foreign key constraint "%s"', broken);
    end if;
    return null;
  end $$;`;

/** Finds references to rows that do not exist; locks existing rows like a foreign key. */
const brokenReference = ({ name, columns, table, key }: Reference, named: string) => `
  select '${name}' as reference from (${named}) as named
  where named.${columns[0]} is not null and not exists (
    select from ${table} as target
    where ${key.map((column, at) => `target.${column} ${at === 0 ? '=' : 'is not distinct from'} named.${columns[at]}`).join(' and ')}
    for key share)`;
