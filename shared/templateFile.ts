import { z } from 'zod';
import { Board } from './board.ts';
import { Card } from './card.ts';
import { count, flag, IS_ACTIVE, id, MOST_SIBLINGS, optionalText, storedChoice, text } from './fields.ts';
import { Group, look } from './group.ts';
import { MasterBoardCreate, MasterCardCreate, MasterGroupCreate } from './master.ts';
import { FieldChange, noun } from './release.ts';
import { requestExamples } from './requestExample.ts';

/** Template files: a master board with its groups and cards as one document. */

/** What a field is if the file does not have it; null for the others. */
export const FILE_DEFAULTS: Readonly<Record<string, string | boolean>> = {
  is_active: true,
  is_collapsed: false,
  status: 'open',
  priority: 'normal',
};

/** Where the schema of the file is, beside the file and on the service. */
export const FILE_SCHEMA_NAME = 'template-file.schema.json';

const keyOf = (noun: string, example: string) =>
  text(100).meta({
    description: `The key of the ${noun}: it stays the same when the title changes. A new key is a new ${noun}.`,
    example,
  });
const is_active = flag.meta({ description: `${IS_ACTIVE}; true if not sent.`, example: true });

const FileCard = z.object({
  key: keyOf('card', 'say-hello').meta({
    description:
      'The `unique_identifier` of the card. It stays the same when the title changes. A new key is a new card.',
  }),
  title: MasterCardCreate.shape.title,
  short_description: MasterCardCreate.shape.short_description,
  description: MasterCardCreate.shape.description,
  status: MasterCardCreate.shape.status,
  priority: MasterCardCreate.shape.priority,
  evaluation_check: MasterCardCreate.shape.evaluation_check,
  tour_key: MasterCardCreate.shape.tour_key,
  is_active,
});

const FileGroup = z.object({
  key: keyOf('group', 'first-steps'),
  title: MasterGroupCreate.shape.title,
  description: MasterGroupCreate.shape.description,
  type: look.type,
  color: look.color,
  icon: look.icon,
  is_active,
  is_collapsed: flag.meta({ description: 'Whether new copies are shown collapsed; false if not sent.' }),
  cards: z.array(FileCard).max(MOST_SIBLINGS).optional().meta({ description: 'Its cards in order.' }),
});

const FileBoard = z
  .object({
    key: keyOf('board', 'onboarding'),
    title: MasterBoardCreate.shape.title.meta({ example: 'Onboarding' }),
    description: MasterBoardCreate.shape.description,
    tool_key: MasterBoardCreate.shape.tool_key.meta({ example: 'onboarding' }),
    is_active,
    groups: z.array(FileGroup).max(MOST_SIBLINGS).optional().meta({ description: 'Its groups in order.' }),
  })
  .check(({ value: { groups = [] }, issues }) => {
    const keys = [
      ...groups.map(({ key }, at) => ({ key: `group ${key}`, path: ['groups', at, 'key'] })),
      ...groups.flatMap(({ cards = [] }, at) =>
        cards.map(({ key }, place) => ({ key: `card ${key}`, path: ['groups', at, 'cards', place, 'key'] })),
      ),
    ];
    const seen = new Set<string>();
    for (const { key, path } of keys) {
      if (seen.has(key)) issues.push({ code: 'custom', input: key, path, message: 'is a duplicate' });
      seen.add(key);
    }
  });

/** Where it is parsed as an input, unknown keys are refused at every level (`unknownFields.ts`). */
export const TemplateFile = z.object({ board: FileBoard.meta({ description: 'The master board.' }) });
export type TemplateFile = z.output<typeof TemplateFile>;

/** The JSON schema of the file, for editors. */
export function templateFileSchema(): object {
  const schema = z.toJSONSchema(TemplateFile, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      if (jsonSchema.type === 'object') jsonSchema.additionalProperties = false;
      delete jsonSchema.example;
    },
  });
  return { ...schema, title: 'Template file', description: 'A master board of Deckhand with its groups and cards.' };
}

const EXAMPLE = {
  board: {
    key: 'welcome',
    title: 'Welcome',
    groups: [{ key: 'first-steps', title: 'First steps', cards: [{ key: 'say-hello', title: 'Say hello' }] }],
  },
};

const template = TemplateFile.meta({ description: 'The file as JSON.' });

export const TemplateExport = z.object({ board_id: id.meta({ description: 'The master board.' }) });
export type TemplateExport = z.output<typeof TemplateExport>;

export const TemplatePlan = z.object({ template });
TemplatePlan.register(requestExamples, { example: { template: EXAMPLE } });
export type TemplatePlan = z.output<typeof TemplatePlan>;

export const TemplateApply = z.object({
  template,
  plan: optionalText(100).meta({
    description: 'The plan that was read: refused if the master board has changed since, or the file is another one.',
    example: null,
  }),
});
TemplateApply.register(requestExamples, { example: { template: EXAMPLE } });
export type TemplateApply = z.output<typeof TemplateApply>;

const key = z.string().meta({ description: 'Its key in the file.', example: 'first-steps' });

/** As exported: fields that are null or have their default are left out. */
export const ExportedTemplate = z
  .object({
    board: z
      .object({
        key,
        ...Board.pick({ title: true, description: true, tool_key: true, is_active: true }).partial().required({
          title: true,
        }).shape,
        groups: z
          .array(
            z.object({
              key,
              ...Group.pick({
                ...{ title: true, description: true, type: true, color: true, icon: true },
                ...{ is_active: true, is_collapsed: true },
              })
                .partial()
                .required({ title: true }).shape,
              cards: z
                .array(
                  z.object({
                    key,
                    ...Card.pick({
                      ...{ title: true, short_description: true, description: true, status: true, priority: true },
                      ...{ evaluation_check: true, tour_key: true, is_active: true },
                    })
                      .partial()
                      .required({ title: true }).shape,
                  }),
                )
                .meta({ description: 'Its cards in order.' }),
            }),
          )
          .meta({ description: 'Its groups in order.' }),
      })
      .meta({ description: 'The master board.' }),
  })
  .meta({ id: 'TemplateFile', description: 'A master board with its groups and cards, as a file.' });
export type ExportedTemplate = z.output<typeof ExportedTemplate>;

export const FILE_CHANGES = ['created', 'changed', 'moved', 'deleted'] as const;

export const TemplateFileChange = z
  .object({
    noun,
    key,
    title: z.string().meta({ description: 'Its title; of a deleted one, the last.', example: 'Say hello' }),
    change: storedChoice(FILE_CHANGES).meta({ description: 'What applying the file does to it.', example: 'changed' }),
    fields: z.array(FieldChange).meta({
      description: 'The changed fields; of a moved one, its `group` or its `position` among its siblings.',
    }),
  })
  .meta({ id: 'TemplateFileChange', description: 'What a template file does to a row of the master board.' });
export type TemplateFileChange = z.output<typeof TemplateFileChange>;

const board_id = id.meta({ description: 'The master board.' });

export const TemplateFilePlan = z.object({
  plan: z.string().meta({
    description: 'The plan, for `import`: it is another one when the master board or the file has changed.',
    example: '5d41402abc4b2a76b9719d911017c592',
  }),
  board_id: board_id.nullable().meta({ description: 'The master board; null if the file creates it.' }),
  changes: z.array(TemplateFileChange).meta({ description: 'What would change; empty if nothing would.' }),
});
export type TemplateFilePlan = z.output<typeof TemplateFilePlan>;

export const TemplateFileResult = z.object({
  board_id,
  created_count: count.meta({ description: 'Number of created rows.', example: 1 }),
  changed_count: count.meta({ description: 'Number of rows with changed fields.', example: 2 }),
  moved_count: count.meta({ description: 'Number of rows in another group or order.', example: 0 }),
  deleted_count: count.meta({ description: 'Number of deleted rows.', example: 0 }),
});
export type TemplateFileResult = z.output<typeof TemplateFileResult>;
