import { createClient } from '../../client/client.ts';
import { fileStorage, openMirror } from '../../client/events/events.ts';

/** Mirrors a board into a file until it is killed. */

const { URL: url = '', TOKEN: token = '', BOARD: board, FILE: file = '' } = process.env;
const client = createClient({ url, token });
await (await openMirror(client, { boardId: Number(board), storage: fileStorage(file) })).follow();
