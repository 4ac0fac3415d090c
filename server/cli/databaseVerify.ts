import { refuseWithoutDatabase } from '../database/connect.ts';
import { type Fault, verifyDatabase } from '../database/verify.ts';
import { counted } from '../runtime/count.ts';
import { readSettings } from '../runtime/env.ts';
import type { Given, Outcome } from './command.ts';
import { withDatabase } from './onDatabase.ts';

export async function verify({ environment, terminal }: Given): Promise<Outcome> {
  const { DATABASE_URL, DATA_DIR } = readSettings(environment());
  if (!DATABASE_URL) refuseWithoutDatabase(DATA_DIR);
  return withDatabase(environment, async (database) => {
    const onProgress = ({ table, rows }: { table: string; rows: number }) => {
      if (terminal.canSee) terminal.update(`Checked ${counted(rows, 'row')} (${table})`);
    };
    const verified = await verifyDatabase(database, { onProgress }).finally(() => {
      if (terminal.canSee) terminal.update('');
    });
    const { tables, rows, pending, faults } = verified;
    const checked = `${counted(rows, 'row')} of ${counted(tables, 'table')} were checked.`;
    const lines = [
      ...faults.map(lineOf),
      faults.length === 0
        ? `Nothing wrong: ${checked}`
        : `${counted(faults.length, 'kind')} of faults; ${checked} Nothing was changed.`,
      ...(pending.length > 0
        ? [`Not everything could be checked: ${counted(pending.length, 'migration')} to run.`]
        : []),
    ];
    return { result: verified, message: lines.join('\n'), hasFailed: faults.length > 0 };
  });
}

function lineOf({ problem, rows, ids, whatToDo }: Fault): string {
  const which = rows > 0 ? `: ${counted(rows, 'row')} (${ids.join(', ')}${rows > ids.length ? ', …' : ''})` : '';
  return `${problem}${which}.\n  ${whatToDo}`;
}
