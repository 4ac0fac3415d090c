import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

/** Passes a command to `commandServer.ts`. In JavaScript without other files, so that it starts at once. */

const [port, ...words] = process.argv.slice(2);
const socket = connect(Number(port), '127.0.0.1');
/** @param {unknown} message */
const send = (message) => socket.write(`${JSON.stringify(message)}\n`);

send({ words, environment: process.env });
for await (const line of createInterface(socket)) {
  const { isAsking, complaint = '', printed = '', exitCode } = JSON.parse(line);
  if (isAsking) send(await text(process.stdin));
  process.stderr.write(complaint);
  process.stdout.write(printed);
  process.exitCode = exitCode;
}
