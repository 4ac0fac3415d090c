import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** The options of a program that is started by hand, with their defaults. `--help` and wrong options print the usage, and end it. */
export function programOptions<Name extends string>(
  command: string,
  defaults: Record<Name, string>,
): Record<Name, string> {
  const flags = Object.entries<string>(defaults);
  const options = Object.fromEntries(flags.map(([name, value]) => [name, { type: 'string', default: value }]));
  const usage = `Usage: ${command}${flags.map(([name, value]) => ` [--${name} ${value || 'TEXT'}]`).join('')}`;
  try {
    const known = { ...options, help: { type: 'boolean' } } as ParseArgsOptionsConfig;
    const { help, ...values } = parseArgs({ options: known }).values;
    if (!help) return values as Record<Name, string>;
    console.log(usage);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message.split('. ')[0]}.\n${usage}`);
    process.exit(2);
  }
}
