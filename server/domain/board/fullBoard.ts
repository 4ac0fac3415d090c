import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { Board, type FullBoard } from '../../../shared/board.ts';
import { Card } from '../../../shared/card.ts';
import { Group } from '../../../shared/group.ts';
import { jsonOf } from '../../database/jsonRow.ts';
import { prepared, type ValueOf } from '../../database/prepared.ts';
import { live, oneRow } from '../../database/query.ts';
import { type Versioned, versionOf } from '../../database/version.ts';
import { LARGEST_RESPONSE_BYTES } from '../../limits/unsentResponses.ts';
import { asJsonText, type DateFields } from '../../runtime/jsonText.ts';
import { type Confirmation, type Confirmed, confirming } from '../access/confirmation.ts';
import type { ProjectContext, SignedInContext } from '../access/context.ts';
import { isEnough, type Permit, permitOf, roleIn } from '../access/permission.ts';
import { noSuchMaster } from '../template/masterRow.ts';
import { IS_OVERDUE } from './card.ts';
import { bytesOf, mustFitResponse, tooManyRows } from './responseSize.ts';
import { type CallerRole, mustBeFound } from './row.ts';
import { isShown } from './tour.ts';

/** Boards with more text are written in pieces of about `PIECE_BYTES`, since one long text would block the event loop. */
const LARGEST_IN_ONE_PIECE = 128 * 1024;
const PIECE_BYTES = 32 * 1024;

/**
 * A board with its groups and cards, without the tour cards that the caller dismissed. PostgreSQL writes the JSON, unless it
 * is too large.
 */
export async function getBoard(context: ProjectContext, { id }: { id: number }): Promise<GottenBoard> {
  const { db, caller } = context;
  const values = { id, ...permitOf(caller) };
  const [small] = await boardStatements.selectSmall(context, values);
  mustBeFound(caller, 'boards', small);
  if (typeof small?.board === 'string') return inOnePiece(small.board, small);

  const pieces = await boardStatements.selectPieces(db, values);
  mustBeFound(caller, 'boards', pieces[0]);
  mustFitResponse(
    pieces[0],
    'The board is too large for one answer. Read it page by page: groups.list and cards.list with its board_id.',
  );
  return inPieces(pieces);
}

/** A master board with its groups and cards, written in the same way. */
export async function getMasterBoard(context: SignedInContext, { id }: { id: number }): Promise<GottenBoard> {
  const { db } = context;
  const [small] = await masterBoardStatements.selectSmall(context, { id });
  if (!small) throw noSuchMaster('boards');
  if (typeof small.board === 'string') return inOnePiece(small.board, small);

  const pieces = await masterBoardStatements.selectPieces(db, { id });
  if (!pieces[0]) throw noSuchMaster('boards');
  mustFitResponse(pieces[0], 'The master board is too large for one answer. Shorten the descriptions on it.');
  return inPieces(pieces);
}

type GottenBoard = Versioned<{ board: z.output<typeof FullBoard> }>;

const inOnePiece = (board: string, { date_digits, version }: SmallBoard): GottenBoard => ({
  board: asJsonText(board, datesOf(date_digits)),
  version,
});

function inPieces(pieces: Piece[]): GottenBoard {
  const sorted = pieces.sort((one, other) => Number(one.place) - Number(other.place));
  const { date_digits, version } = oneRow(sorted);
  const texts = sorted.map(({ text }) => text);
  return { board: asJsonText(texts, datesOf(date_digits)), version };
}

/** A digit per card, with commas between groups: the index in `CARD_DATES`. */
type DateDigits = { date_digits: string | null };
/** The board is null if it is larger than one piece. */
type SmallBoard = Versioned<CallerRole & DateDigits & Confirmed & { board: string | null }>;
type Piece = Versioned<CallerRole & DateDigits & { is_too_large: boolean; place: string; text: string }>;

/** Which board `b` is found, the caller's role there, whether it is written, and which of its cards `c` are shown. */
type Choice = Record<'which' | 'callerRole' | 'isReadable' | 'shownCards', RawBuilder<unknown>>;

const statementsFor = <Values extends object>(choose: (value: ValueOf<Values>) => Choice) => ({
  selectSmall: confirming<Values, SmallBoard>((value, confirmation) => smallBoard(choose(value), confirmation), {
    isShort: true,
  }),
  selectPieces: prepared<Values, Piece>((value) => boardInPieces(choose(value))),
});

const boardStatements = statementsFor<Permit & { id: number }>((value) => ({
  which: sql`b.id = ${value('id')} and b.project_id is not null`,
  callerRole: roleIn('b.project_id', value),
  isReadable: isEnough(sql`permitted.caller_role`, value),
  shownCards: isShown('c', value('user_id')),
}));

const masterBoardStatements = statementsFor<{ id: number }>((value) => ({
  which: sql`b.id = ${value('id')} and b.is_master`,
  callerRole: sql`null::text`,
  isReadable: sql`true`,
  shownCards: sql`true`,
}));

/** The size of the board `b` without escapes, which is known before anything is written. No more cards are read than can fit. */
const sizeOfBoard = (largest: number) => sql`
    cross join lateral (
      select coalesce(sum(bytes), 0) > ${sql.lit(largest)} as is_too_large from (
        select ${bytesOf('groups', 'g')} as bytes from groups g where g.board_id = b.id and ${live('g')}
        union all
        (select c.bytes from groups g cross join lateral (
            select ${bytesOf('cards', 'c')} as bytes from cards c where c.group_id = g.id and ${live('c')} offset 0) as c
          where g.board_id = b.id and ${live('g')} limit ${sql.lit(tooManyRows('cards', largest))})
      ) as parts
    ) as size`;

function smallBoard(
  { which, callerRole, isReadable, shownCards }: Choice,
  { alone, isConfirmed }: Confirmation,
): RawBuilder<SmallBoard> {
  return sql`
    ${alone}
    select ${isConfirmed} as is_confirmed, b.project_id, permitted.caller_role, ${versionOf('b')} as version, written.board,
      written.date_digits
    from boards b cross join lateral (select ${callerRole} as caller_role) as permitted
    ${sizeOfBoard(LARGEST_IN_ONE_PIECE)}
    left join lateral (
      select ${opened('b', Board)} || ',"groups":[' || coalesce(string_agg(listed.json, ','), '') || ']}' as board,
        string_agg(listed.dates, ',') as date_digits
      from (
        select ${opened('g', Group)} || ',"cards":[' || coalesce(in_group.cards, '') || ']}' as json,
          coalesce(in_group.dates, '') as dates
        from groups g cross join lateral (
          select string_agg(card.json, ',') as cards, string_agg(card.dates, '') as dates
          from (${cardsOf('g.id', shownCards)}) as card
        ) as in_group
        where g.board_id = b.id and ${live('g')} and not size.is_too_large
        order by g.position, g.id
      ) as listed
    ) as written on ${isReadable} and not size.is_too_large
    where ${which} and ${live('b')} and ${isConfirmed}`;
}

/**
 * A row for each piece of the JSON. Each group starts a new piece, and a large group has several. Pieces are joined by commas:
 *
 *     place 1   {"id":1, …,"groups":[  {"id":7, …,"cards":[  card , card
 *     place 2   ,                                            card , card   ]}
 *     place 3   ,                      {"id":8, …,"cards":[  card          ]}   ]}
 *               └ `boards`             └ `listed` (groups)   └ `step` cards      └ of the last piece
 *
 * `offset 0` keeps PostgreSQL from writing a text again wherever it is used.
 */
function boardInPieces({ which, callerRole, isReadable, shownCards }: Choice): RawBuilder<Piece> {
  // Checked twice: before it is written without escapes, afterwards with them.
  const isTooLarge = sql`(size.is_too_large or coalesce(written.bytes > ${sql.lit(LARGEST_RESPONSE_BYTES)}, false))`;
  return sql`
    select b.project_id, permitted.caller_role, ${versionOf('b')} as version, ${isTooLarge} as is_too_large, piece.place,
      case when piece.place = 1 then written.date_digits end as date_digits,
      concat(case when piece.place = 1 then ${opened('b', Board)} || ',"groups":[' else ',' end, piece.text,
        case when piece.place = written.pieces then ']}' end) as text
    from boards b cross join lateral (select ${callerRole} as caller_role offset 0) as permitted
    ${sizeOfBoard(LARGEST_RESPONSE_BYTES)}
    left join lateral (
      select coalesce(array_agg(piece.text), array['']) as texts, greatest(1, count(*)) as pieces, sum(octet_length(piece.text)) as bytes,
        string_agg(case when part = 0 then listed.dates end, ',') as date_digits
      from (
        select ${opened('g', Group)} || ',"cards":[' as json, in_group.*,
          greatest(0, (in_group.count - 1) / in_group.step) as last
        from groups g cross join lateral (
          select array_agg(card.json) as cards, coalesce(string_agg(card.dates, ''), '') as dates, count(*)::int as count,
            greatest(1, count(*) * ${sql.lit(PIECE_BYTES)} / greatest(1, sum(octet_length(card.json))))::int as step
          from (${cardsOf('g.id', shownCards)} offset 0) as card
        ) as in_group
        where g.board_id = b.id and ${live('g')} and not size.is_too_large
        order by g.position, g.id
      ) as listed
      cross join lateral generate_series(0, listed.last) as part
      cross join lateral (
        select concat(case when part = 0 then listed.json end,
          array_to_string(listed.cards[part * listed.step + 1:(part + 1) * listed.step], ','),
          case when part = listed.last then ']}' end) as text
        offset 0
      ) as piece
    ) as written on ${isReadable} and not size.is_too_large
    left join lateral unnest(case when not ${isTooLarge} then written.texts end)
      with ordinality as piece(text, place) on true
    where ${which} and ${live('b')}`;
}

/** A row as JSON without the closing brace. */
const opened = (alias: string, model: z.ZodObject) => sql`left(${jsonOf(alias, model)}, -1)`;

/** The cards of a group in order as JSON, with their date digits. */
const cardsOf = (groupId: string, shownCards: RawBuilder<unknown>) => sql`
  select ${jsonOf('c', Card, { is_overdue: IS_OVERDUE })} as json,
    case when c.due_date is null then case when c.snoozed_until is null then '0' else '1' end
      when c.snoozed_until is null then '2' else '3' end as dates
  from cards c where c.group_id = ${sql.ref(groupId)} and ${live('c')} and ${shownCards}
  order by c.position, c.id`;

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
