import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { Board, type FullBoard } from '../../../shared/board.ts';
import { Card } from '../../../shared/card.ts';
import { Group } from '../../../shared/group.ts';
import { prepared } from '../../database/prepared.ts';
import { live } from '../../database/query.ts';
import { LARGEST_RESPONSE_BYTES } from '../../limits/responseBudget.ts';
import { asJsonText, type DateFields } from '../../runtime/jsonText.ts';
import type { ProjectContext, SignedInContext } from '../access/context.ts';
import { isEnough, type Permit, permitOf, roleIn } from '../access/permission.ts';
import { noSuchMaster } from '../rows/masterRow.ts';
import { bytesOf, mustFitResponse, tooManyRows } from '../rows/responseSize.ts';
import { type CallerRole, mustBeFound } from '../rows/row.ts';
import { IS_OVERDUE } from './card.ts';
import { isShown } from './tour.ts';

/**
 * A board with its groups and cards, without the tour cards that the caller dismissed. PostgreSQL writes the JSON, unless it
 * is too large.
 */
export async function getBoard(
  { db, caller }: ProjectContext,
  { id }: { id: number },
): Promise<{ board: z.output<typeof FullBoard> }> {
  const [found] = await selectBoard(db, { id, ...permitOf(caller) });
  const written = mustBeFound(caller, 'boards', found);
  mustFitResponse(
    written,
    'The board is too large for one answer. Read its cards page by page: cards.list with group_id.',
  );

  return { board: toJsonText(written) };
}

/** A master board with its groups and cards, written in the same way. */
export async function getMasterBoard(
  { db }: SignedInContext,
  { id }: { id: number },
): Promise<{ board: z.output<typeof FullBoard> }> {
  const [found] = await selectMasterBoard(db, { id });
  if (!found) throw noSuchMaster('boards');
  mustFitResponse(found, 'The master board is too large for one answer. Shorten the descriptions on it.');

  return { board: toJsonText(found) };
}

/** The board is null only where it does not fit. */
const toJsonText = ({ board, date_digits }: Pick<WrittenBoard, 'board' | 'date_digits'>) =>
  asJsonText<z.output<typeof FullBoard>>(board ?? 'null', datesOf(date_digits));

type WrittenBoard = CallerRole & {
  is_too_large: boolean;
  board: string | null;
  /** A digit per card, with commas between groups: the index in `CARD_DATES`. */
  date_digits: string | null;
};

const selectBoard = prepared<Permit & { id: number }, WrittenBoard>((value) =>
  writtenBoard({
    which: sql`b.id = ${value('id')} and b.project_id is not null`,
    callerRole: roleIn('b.project_id', value),
    isReadable: isEnough(sql`permitted.caller_role`, value),
    shownCards: isShown('c', value('user_id')),
  }),
);

const selectMasterBoard = prepared<{ id: number }, WrittenBoard>((value) =>
  writtenBoard({
    which: sql`b.id = ${value('id')} and b.is_master`,
    callerRole: sql`null::text`,
    isReadable: sql`true`,
    shownCards: sql`true`,
  }),
);

/** Which board `b` is found, the caller's role there, whether it is written, and which of its cards `c` are shown. */
type Choice = Record<'which' | 'callerRole' | 'isReadable' | 'shownCards', RawBuilder<unknown>>;

function writtenBoard({ which, callerRole, isReadable, shownCards }: Choice): RawBuilder<WrittenBoard> {
  const largest = sql.lit(LARGEST_RESPONSE_BYTES);
  // The size is checked twice: before it is written without escapes, afterwards with them. No more cards are read than can fit.
  return sql`
    select b.project_id, permitted.caller_role,
      size.is_too_large or coalesce(octet_length(written.board) > ${largest}, false) as is_too_large,
      case when octet_length(written.board) <= ${largest} then written.board end as board, written.date_digits
    from boards b cross join lateral (select ${callerRole} as caller_role) as permitted
    cross join lateral (
      select coalesce(sum(bytes), 0) > ${largest} as is_too_large from (
        select ${bytesOf('groups', 'g')} as bytes from groups g where g.board_id = b.id and ${live('g')}
        union all
        (select c.bytes from groups g cross join lateral (
            select ${bytesOf('cards', 'c')} as bytes from cards c where c.group_id = g.id and ${live('c')} offset 0) as c
          where g.board_id = b.id and ${live('g')} limit ${sql.lit(tooManyRows('cards'))})
      ) as parts
    ) as size
    left join lateral (
      select left((select row_to_json(board)::text from (select ${fieldsOf('b', Board)}) as board), -1)
          || ',"groups":[' || coalesce(string_agg(listed.json, ','), '') || ']}' as board,
        string_agg(listed.dates, ',') as date_digits
      from (
        select left((select row_to_json(listed)::text from (select ${fieldsOf('g', Group)}) as listed), -1)
            || ',"cards":[' || coalesce(in_group.cards, '') || ']}' as json,
          coalesce(in_group.dates, '') as dates
        from groups g cross join lateral (
          select string_agg(row_to_json(card)::text, ',') as cards,
            string_agg(case when card.due_date is null then case when card.snoozed_until is null then '0' else '1' end
              when card.snoozed_until is null then '2' else '3' end, '') as dates
          from (
            select ${fieldsOf('c', Card, { is_overdue: IS_OVERDUE })} from cards c
            where c.group_id = g.id and ${live('c')} and ${shownCards}
            order by c.position, c.id
          ) as card
        ) as in_group
        where g.board_id = b.id and ${live('g')} and not size.is_too_large
        order by g.position, g.id
      ) as listed
    ) as written on ${isReadable} and not size.is_too_large
    where ${which} and ${live('b')}`;
}

/** Selects the fields of a model in order, with timestamps as in REST. */
function fieldsOf(
  alias: string,
  model: z.ZodObject,
  derived: Record<string, RawBuilder<unknown>> = {},
): RawBuilder<unknown> {
  const fields = Object.entries(model.shape).map(([name, field]) => {
    const column = derived[name] ?? sql.ref(`${alias}.${name}`);
    return sql`${isTimestamp(field as z.ZodType) ? isoText(column) : column} as ${sql.ref(name)}`;
  });
  return sql.join(fields);
}

const isTimestamp = (field: z.ZodType): boolean =>
  field instanceof z.ZodNullable ? isTimestamp(field.unwrap() as z.ZodType) : field instanceof z.ZodCodec;

const isoText = (timestamp: RawBuilder<unknown>) =>
  sql`to_char(${timestamp} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const ALWAYS_DATES = ['created_at', 'updated_at'];
/** By the digit of a card. */
const CARD_DATES: readonly DateFields[] = [[], ['snoozed_until'], ['due_date'], ['due_date', 'snoozed_until']].map(
  (others) => ({ own: [...ALWAYS_DATES, ...others] }),
);

function datesOf(dateDigits: string | null): DateFields {
  const groups = dateDigits === null ? [] : dateDigits.split(',');
  return {
    own: ALWAYS_DATES,
    lists: {
      groups: groups.map((cards) => ({
        own: ALWAYS_DATES,
        lists: { cards: [...cards].flatMap((digit) => CARD_DATES[Number(digit)] ?? []) },
      })),
    },
  };
}
