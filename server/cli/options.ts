export type Option = {
  flag: string;
  /** One letter that stands for the flag: `f` for `-f`. */
  short?: string | undefined;
  /** The field of the input: `default_project_id` is `--default-project-id`. Undefined for common options. */
  field?: string;
  kind: 'text' | 'number' | 'yes-no' | 'list' | 'positions' | 'rows' | 'object' | 'secret' | 'switch';
  description: string;
  /** What stands for its value in the help; that of its kind if undefined. */
  value?: string;
  choices?: string[] | undefined;
  isRequired?: boolean;
  /** The other option with which it is not required. */
  exceptWith?: Record<string, unknown> | undefined;
  /** For secrets: whether it is a new one. */
  isNew?: boolean;
};

/** Options of many commands. */
export const COMMON = {
  project: { kind: 'number', description: 'Act in this project, instead of the default one.' },
  as: { kind: 'text', value: 'EMAIL', description: 'On the database: act as this user.' },
  url: {
    kind: 'text',
    value: 'URL',
    description:
      'The service to act on, as the user who signed in with login, or with the API key in DECKHAND_KEY; DECKHAND_URL if not given.',
  },
  all: { kind: 'switch', description: 'Print all pages.' },
  columns: { kind: 'list', description: 'Show these columns only.' },
  yes: { kind: 'switch', description: 'Do not ask before it runs.' },
  recovery: { kind: 'switch', description: 'Use a recovery code as the second factor.' },
  json: { kind: 'switch', description: 'Print the result as JSON.' },
} as const satisfies Record<string, Omit<Option, 'flag'>>;
export type Common = keyof typeof COMMON;

/** The common options that were given. */
export type Chosen = {
  project?: number;
  as?: string;
  url?: string;
  all?: boolean;
  columns?: string[];
  yes?: boolean;
  recovery?: boolean;
  json?: boolean;
};

export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** `users sign-out` of `users.signOut`. */
export const commandName = (procedure: string) => kebab(procedure).replace('.', ' ');

/** Whether an option of this kind has no value behind it. */
export const isAlone = (kind: Option['kind']) => kind === 'yes-no' || kind === 'secret' || kind === 'switch';
