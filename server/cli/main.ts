import { environment } from '../runtime/environment.ts';
import { runCommandLine } from './run.ts';

const { exitCode, printed, complaint } = await runCommandLine(process.argv.slice(2), environment);
if (printed !== undefined) console.log(printed);
if (complaint !== undefined) console.error(complaint);
// Exit explicitly: a hanging connection would keep the process alive.
process.exit(exitCode);
