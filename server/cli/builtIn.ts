import { z } from 'zod';
import { STATES } from '../../client/testing/sandbox/states.ts';
import { EventFollow } from '../../shared/event.ts';
import { REQUIRED_UNLESS } from '../../shared/fields.ts';
import { Authenticate } from '../../shared/user.ts';
import type { BuiltIn } from './command.ts';
import { SHORT } from './inputOptions.ts';
import { PAGES } from './pagePath.ts';

const file = (description: string) => z.object({ file: z.string().meta({ description }) });

const told = {
  erasures: z
    .string()
    .optional()
    .meta({ description: 'The file of persons who were erased: they are erased again before anybody is served.' }),
  without_erasures: z.boolean().optional().meta({ description: 'Nobody was erased since, so there is no such file.' }),
};

const templateFile = z.string().meta({ description: 'The template file, as in template.yaml.', [SHORT]: 'f' });

/** The commands that are no procedures. Each loads its code when it runs, so that the others start fast. */
export const BUILT_IN: Record<string, BuiltIn> = {
  migrate: {
    does: 'Run pending migrations.',
    run: async (given) => (await import('./databaseState.ts')).runMigrations(given),
  },
  demo: {
    does: 'Fill an empty database with the demo data.',
    run: async (given) => (await import('./databaseState.ts')).fillDemo(given),
  },
  login: {
    does: 'Sign in to a service, with a prompt for the password or in the browser: commands with its --url then act as you.',
    explains:
      'With --sso, prints an address of the identity provider and opens it in the browser, and waits for five minutes until you have signed in there.',
    input: z.object({
      email: Authenticate.shape.email
        .optional()
        .meta({ description: 'Your e-mail address.', example: 'member@demo.test', [REQUIRED_UNLESS]: { sso: true } }),
      sso: z.boolean().optional().meta({ description: 'Sign in at an identity provider of the service instead.' }),
      issuer: z.string().optional().meta({ description: 'With --sso: which one, if there are several.' }),
    }),
    operands: ['issuer'],
    common: ['url', 'recovery'],
    run: async (given) => (await import('./login.ts')).login(given),
  },
  logout: {
    does: 'End the login to a service.',
    common: ['url'],
    run: async (given) => (await import('./login.ts')).logout(given),
  },
  open: {
    does: 'Open a page of the service in the browser.',
    explains:
      'Without PAGE, the start page. Prints the address, and starts the program in BROWSER, or the one of this system. The service is that of --url or DECKHAND_URL, else that of your only login, else the one on this machine. A board or a card is looked up with your login. The exit code is 1 if no browser was started.',
    input: z.object({
      page: z.enum(PAGES).optional().meta({ description: 'What to open.' }),
      id: z.int().optional().meta({ description: 'The id of the project, rollout, board or card.' }),
      print: z.boolean().optional().meta({ description: 'Only print the address.' }),
    }),
    operands: ['page', 'id'],
    common: ['url'],
    example: () => ({ fields: { page: 'boards', id: 2, print: true }, email: 'member@demo.test' }),
    run: async (given) => (await import('./open.ts')).openPage(given),
  },
  'events follow': {
    does: 'Print events as they happen, and forward them to a receiver on your machine.',
    explains:
      'Follows the events that you may see, until Ctrl-C, which prints where to go on. Connects again by itself. With --forward, each event is sent to your address as a webhook would send it, signed, one after the other: what is not delivered is reported and not sent again. --json prints one JSON object in each line. The service is that of --url or DECKHAND_URL, else that of your only login, else the one on this machine.',
    input: EventFollow.pick({ types: true, project_id: true, after: true }).extend({
      after: EventFollow.shape.after.meta({
        description: 'Begin behind this cursor, which Ctrl-C and events list print. Now if not given.',
      }),
      forward: z
        .string()
        .optional()
        .meta({ description: 'Send each event to this address, as in http://localhost:4000/hook.' }),
      secret: z.string().optional().meta({
        description: 'Sign with this secret of an earlier run (whsec_…); a new one, which is printed, if not given.',
      }),
    }),
    common: ['project', 'url'],
    example: () => ({ fields: { types: ['card.created', 'card.moved'] }, email: 'member@demo.test' }),
    run: async (given) => (await import('./eventFollow.ts')).followEvents(given),
  },
  sandbox: {
    does: 'Start a service for tests in any language, with states, a clock to set and faults on demand.',
    explains:
      'Runs the whole service on a database in memory until Ctrl-C, and forgets everything then. Its keys and passwords are public: it is not for production. Other programs set its state, clock and faults over HTTP: see docs/sandbox.md.',
    input: z.object({
      state: z
        .enum(Object.keys(STATES))
        .optional()
        .meta({ description: 'The state to begin with; demo if not given.' }),
      port: z.int().optional().meta({ description: 'The port; 3100 if not given, 0 for a free one.' }),
      host: z.string().optional().meta({
        description: 'The address to listen on; 127.0.0.1 if not given, which only this machine reaches.',
      }),
      receivers: z.array(z.string()).optional().meta({
        description: 'Hosts that webhooks may call, as in app:8080 or app:*. On a loopback host, also this machine.',
      }),
    }),
    run: async (given) => (await import('./sandbox.ts')).runSandbox(given),
  },
  contract: {
    does: 'Check a deployed service against the document of this version.',
    explains:
      'Calls every operation over REST and over RPC, and reports what is missing, what is not as documented, and where the two differ. Without --write it changes nothing: it reads, and sends calls that are refused. The exit code is 1 if something differs, 2 if the service can not be checked.',
    input: z.object({
      key: z.string().optional().meta({
        description:
          'The API key. Other users of this machine can see it: better set DECKHAND_KEY, or sign in with login.',
      }),
      write: z.boolean().optional().meta({
        description:
          'Also create, change and delete rows of its own, in a project of its own if the key may create one. They are removed at the end.',
      }),
      receiver: z.string().optional().meta({
        description:
          'With --write: the address at which the service reaches this command with webhooks. This machine, for a service on it, if not given; otherwise webhooks are not checked.',
      }),
      receiver_port: z.int().min(1).max(65_535).optional().meta({
        description: 'The port at which this command listens for them; that of --receiver if not given.',
      }),
      junit: z.string().optional().meta({ description: 'Write the results to this file as JUnit XML, too.' }),
    }),
    common: ['url', 'project'],
    run: async (given) => (await import('./contract.ts')).contract(given),
  },
  diff: {
    does: 'Compare two OpenAPI documents: what breaks callers, and what is new.',
    explains: 'Each document is a file or a URL. The exit code is 1 if a change can break a caller.',
    input: z.object({
      old: z.string().meta({ description: 'The document that callers know.' }),
      new: z.string().meta({ description: 'The document to compare it with.' }),
    }),
    operands: ['old', 'new'],
    run: async (given) => (await import('./diff.ts')).diff(given),
  },
  'database copy': {
    does: 'Copy the embedded database to a PostgreSQL server.',
    explains:
      'Copies all rows of the embedded database in DATA_DIR, with their ids, to the PostgreSQL database of DATABASE_URL, which must be empty: its tables are created. All rows are copied, or none; the embedded database stays as it is. Stop the service first. Needs --erasures or --without-erasures. Webhooks are paused and mails held in the copy, so that it calls nobody by itself.',
    input: z.object({
      resume_webhooks: z
        .boolean()
        .optional()
        .meta({ description: 'The copy takes the place of the embedded database: its webhooks go on.' }),
      ...told,
    }),
    run: async (given) => (await import('./databaseCopy.ts')).copyToServer(given),
  },
  'database backup': {
    does: 'Back up the embedded database to a file.',
    explains:
      'Writes the embedded database in DATA_DIR and its generated secret to a new file that only its owner can read. Stop the service first. For a PostgreSQL server, use pg_dump.',
    input: file('The file to write, as in deckhand.tar.gz.'),
    run: async (given) => (await import('./databaseFile.ts')).backup(given),
  },
  'database sizes': {
    does: 'Show the size of each table, and what is about to be removed.',
    explains:
      'For the database of the settings, the rows and bytes of each table, and how many rows are due to be removed by the present settings. On a PostgreSQL server the service can keep running. Rows of a large table are estimated ("about").',
    run: async (given) => (await import('./databaseSizes.ts')).databaseSizes(given),
  },
  'database restore': {
    does: 'Restore the embedded database from a file.',
    explains:
      'Restores a file of database backup into DATA_DIR, which must have no database yet. All of it is restored, or nothing. Needs --erasures or --without-erasures. Webhooks are paused and mails held, until webhooks resume.',
    input: file('The file that database backup wrote.').extend(told),
    run: async (given) => (await import('./databaseFile.ts')).restore(given),
  },
  'database finish-upgrade': {
    does: 'Finish an upgrade, once all nodes are of this version.',
    explains:
      'Raises the level of the database to that of this version: what nodes of the version before could not read is written from then on. First replace all nodes, which may run meanwhile. It can be repeated. An embedded database, and a new one, need no command.',
    run: async (given) => (await import('./databaseState.ts')).finishUpgradeOf(given),
  },
  'database lock-demo-users': {
    does: 'Give the demo users random passwords, and deactivate them.',
    explains:
      'For demo data on a service that others reach: the demo password is public. If no other superadmin is left, creates admin@deckhand.local and shows the password once. Stop a service with an embedded database first.',
    run: async (given) => (await import('./demoUsers.ts')).lockDemoUsers(given),
  },
  'database mark-restored': {
    does: 'Say that a database went back in time, or is a copy of its files.',
    explains:
      'The start notices by itself that a database was restored with pg_restore, database restore or database copy. It can not notice a snapshot of a disk, or copied files of a data directory. Run this before the first start on them: webhooks are paused, cursors of events from before are refused, and ids of events jump ahead. Stop the service first.',
    run: async (given) => (await import('./databaseState.ts')).markRestored(given),
  },
  'erasures list': {
    does: 'Print who was erased, as the lines of a file of erasures.',
    explains: 'Keep them with your backups, unless ERASURES_FILE does that. A line has ids and times, no names.',
    run: async (given) => (await import('./erasures.ts')).listOf(given),
  },
  'erasures apply': {
    does: 'Erase the persons of a file again, in a restored database.',
    explains:
      'A database that was restored or copied serves nobody until this command or erasures none, since it may have persons who were erased after the backup. A running service goes on within seconds. It can be repeated.',
    input: z.object({ file: z.string().meta({ description: 'The file of erasures, as in erasures.jsonl.' }) }),
    operands: ['file'],
    run: async (given) => (await import('./erasures.ts')).applyFile(given),
  },
  'erasures none': {
    does: 'Say that nobody was erased since a backup, so that a restored database is used.',
    run: async (given) => (await import('./erasures.ts')).tellNone(given),
  },
  'webhooks resume': {
    does: 'Let webhooks go on that a restore or a copy has paused.',
    explains:
      'A restored or copied database sends nothing to receivers until this command, so that a copy for tests never calls them. Run it if the database takes the place of the earlier one. Each webhook goes on behind the last event that it got; receivers may get events again that were sent after the backup, with the same ids.',
    run: async (given) => (await import('./databaseState.ts')).resumeWebhooksOf(given),
  },
  'database verify': {
    does: 'Look for rows that do not fit together.',
    explains:
      'Finds rows that refer to missing rows or to another tenant, copies without a template, positions at the end of their range, counters behind their ids, and missing constraints, as after a restore that checked nothing. Only reads, in batches: the nodes on a PostgreSQL server may run meanwhile. The exit code is 1 if something is wrong.',
    run: async (given) => (await import('./databaseState.ts')).verify(given),
  },
  'templates export': {
    does: 'Write a master board with its groups and cards as a YAML file.',
    explains:
      'The file has the draft. Each row has a key, by which templates plan and templates apply find it again: a changed title is a rename. For superadmins.',
    input: z.object({
      board_id: z.int().meta({ description: 'The master board.' }),
      file: templateFile.optional().meta({ description: 'The file to write; the output if not given.', [SHORT]: 'f' }),
    }),
    common: ['as', 'url'],
    run: async (given) => (await import('./templateFile.ts')).exportFile(given),
  },
  'templates plan': {
    does: 'Show what a template file would change on its master board.',
    explains:
      'Nothing changes. The exit code is 0 if there is nothing to change, 3 if there are changes, 4 if a card of the file belongs to another master board, 2 if the file is not valid, and 1 for other errors. For superadmins.',
    input: z.object({ file: templateFile }),
    common: ['as', 'url'],
    run: async (given) => (await import('./templateFile.ts')).planFile(given),
  },
  'templates apply': {
    does: 'Make a master board what a template file says.',
    explains:
      'Changes the draft in one transaction: rows that the file does not name are deleted from it. Projects keep their copies until a release, a sync or a push. Asks first on a terminal; elsewhere it needs --plan or --yes. The exit code is 0 if the draft is as in the file now, 4 if it has changed since the plan or a card belongs to another master board, 2 if the file is not valid, and 1 for other errors. For superadmins.',
    input: z.object({
      file: templateFile,
      plan: z.string().optional().meta({ description: 'Only if this is still the plan that templates plan prints.' }),
      publish: z.boolean().optional().meta({ description: 'Publish the draft as a release afterwards.' }),
      note: z.string().optional().meta({ description: 'The note of the release: what changed and why.' }),
    }),
    common: ['as', 'url', 'yes'],
    run: async (given) => (await import('./templateFile.ts')).applyFile(given),
  },
};
