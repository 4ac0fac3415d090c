import { type messages, protocol, type types } from '@electric-sql/pglite';

/** A column of a result, with the parser for its text. */
export type Column = { name: string; dataTypeID: number; parse: types.Parser | undefined };

export type EmbeddedResponse = { rows: object[]; messages: messages.BackendMessage[] };

const DATA_ROW = 'D'.charCodeAt(0);
const ERROR = 'E'.charCodeAt(0);
/** Errors, completed commands, and descriptions of parameters and rows; other messages are ignored. */
const READ_MESSAGES = new Set([...'ECtT'].map((letter) => letter.charCodeAt(0)));

/** Parses a response in PostgreSQL's protocol; PGlite's own parser is slower per field. */
export function readResponse(bytes: Buffer, columns: Column[]): EmbeddedResponse {
  const response: EmbeddedResponse = { rows: [], messages: [] };
  eachMessage(bytes, (type, at, end) => {
    if (type === DATA_ROW) response.rows.push(readRow(bytes, at, columns));
    else if (READ_MESSAGES.has(type)) response.messages.push(parseMessage(bytes.subarray(at, end)));
  });
  return response;
}

export function findError(bytes: Buffer): messages.DatabaseError | undefined {
  let error: messages.BackendMessage | undefined;
  eachMessage(bytes, (type, at, end) => {
    if (type === ERROR) error ??= parseMessage(bytes.subarray(at, end));
  });
  return error as messages.DatabaseError | undefined;
}

/** The count in `INSERT 0 5` or `UPDATE 3`; 0 for a `SELECT 2`. */
export function countAffected({ messages }: EmbeddedResponse): number {
  const complete = messages.find(({ name }) => name === 'commandComplete') as
    | messages.CommandCompleteMessage
    | undefined;
  const [, count] = /^(?:INSERT 0|UPDATE|DELETE|MERGE) (\d+)$/.exec(complete?.text ?? '') ?? [];
  return Number(count ?? 0);
}

/** A message is a type letter, the length of the rest including itself, and the content. */
function eachMessage(bytes: Buffer, read: (type: number, at: number, end: number) => void): void {
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    read(bytes.readUInt8(at), at, end);
    at = end;
  }
}

const parser = new protocol.Parser();

function parseMessage(bytes: Buffer): messages.BackendMessage {
  let parsed: messages.BackendMessage | undefined;
  parser.parse(bytes, (message) => {
    parsed = message;
  });
  return parsed!;
}

/** After type, length and the number of columns: the length of each value, -1 for null, and its text. */
function readRow(bytes: Buffer, start: number, columns: Column[]): object {
  const row: Record<string, unknown> = {};
  let at = start + 7;
  for (const { name, dataTypeID, parse } of columns) {
    const length = bytes.readInt32BE(at);
    at += 4;
    if (length < 0) {
      row[name] = null;
      continue;
    }
    const text = bytes.toString('utf8', at, at + length);
    row[name] = parse ? parse(text, dataTypeID) : text;
    at += length;
  }
  return row;
}
