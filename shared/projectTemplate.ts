import { z } from 'zod';
import { count, id, optionalText, optionalTimestamp, TIMESTAMP_FORMAT, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { noun, TEMPLATE_NOUNS } from './release.ts';
import { requestExamples } from './requestExample.ts';

/** What a project has of a master board: which release, whether it holds changes, what differs. */

export const LONGEST_HOLD_DAYS = 366;
export const USUAL_HOLD_DAYS = 30;

const boardOfProject = id.meta({ description: "The project's board, a copy of a master board." });

export const ProjectTemplate = z
  .object({
    board_id: boardOfProject,
    master_board_id: id.meta({ description: 'The master board.' }),
    title: z.string().meta({ description: 'The title of the board.' }),
    release_number: count.nullable().meta({ description: 'The release that it has; null if that is not known.' }),
    release_note: z.string().nullable().meta({ description: 'What changed in that release, and why.' }),
    release_user_name: z.string().nullable().meta({ description: 'Who published it.' }),
    latest_number: count.nullable().meta({ description: 'The latest release of the master board.', example: 2 }),
    hold_until: timestamp.nullable().meta({ description: 'Until when the project holds changes.' }),
    held_by_name: z.string().nullable().meta({ description: 'Who holds them.' }),
    hold_note: z.string().nullable().meta({ description: 'Why.' }),
    pinned_count: count.meta({
      description: 'Rows that were rolled back: they are left out until their template changes.',
      example: 0,
    }),
  })
  .meta({ id: 'ProjectTemplate', description: 'A board of a project that came from a master board.' });

export const TemplateHold = z.object({
  board_id: boardOfProject,
  until: optionalTimestamp.meta({
    description: `Until when, at most ${LONGEST_HOLD_DAYS} days ahead: ${TIMESTAMP_FORMAT}. For ${USUAL_HOLD_DAYS} days if not sent.`,
    example: null,
  }),
  note: optionalText(2000).meta({ description: 'Why.', example: 'We are about to launch.' }),
});
TemplateHold.register(requestExamples, { example: { board_id: 3, note: 'We are about to launch.' } });
export type TemplateHold = z.output<typeof TemplateHold>;

export const TemplateUnhold = z.object({ board_id: boardOfProject });
TemplateUnhold.register(requestExamples, { example: { board_id: 3 } });
export const TemplateUnpin = TemplateUnhold;
export type OfBoard = z.output<typeof TemplateUnhold>;

export const TemplateReset = z.object({
  noun: z.enum(TEMPLATE_NOUNS).meta({ description: 'What kind of row it is.', example: 'card' }),
  id: id.meta({ description: "The project's copy." }),
});
TemplateReset.register(requestExamples, { example: { noun: 'card', id: 6 } });
export type TemplateReset = z.output<typeof TemplateReset>;

export const DriftField = z
  .object({
    noun,
    id: id.meta({ description: "The project's copy." }),
    field: z.string().meta({ description: 'The field.', example: 'title' }),
    is_edited: z.boolean().meta({
      description: 'Whether the project edited it; otherwise it is older than the release.',
    }),
  })
  .meta({ id: 'DriftField', description: 'A field that differs from the release of the project.' });

export const Drift = z
  .object({
    project_id: id.meta({ description: 'The project.' }),
    project_name: z.string().meta({ description: 'Its name.' }),
    board_id: id.nullable().meta({ description: 'Its copy of the board; null without one.' }),
    release_number: count.nullable().meta({ description: 'The release that it has; null if that is not known.' }),
    hold_until: timestamp.nullable().meta({ description: 'Until when it holds changes.' }),
    pinned_count: count.meta({ description: 'Rows that were rolled back there.', example: 0 }),
    fields: z.array(DriftField).meta({ description: 'The fields that differ, up to 100.' }),
    fields_count: count.meta({ description: 'Number of fields that differ.', example: 1 }),
    rows_added: count.meta({ description: 'Groups and cards of its own on the board.', example: 0 }),
    rows_deleted: count.meta({ description: 'Copies that it deleted.', example: 0 }),
    rows_missing: count.meta({ description: 'Rows of the release that it never got.', example: 0 }),
  })
  .meta({ id: 'TemplateDrift', description: 'How a project differs from the release that it has.' });

export const DriftList = Page.extend({
  board_id: id.meta({ description: 'The master board.' }),
  project_id: id.nullish().meta({ description: 'Only this project.', example: null }),
  release_number: z
    .int32()
    .min(1)
    .nullish()
    .meta({ description: 'Only projects that have this release.', example: null }),
  is_behind: z.boolean().nullish().meta({
    description: 'Only projects without the latest release, or only those with it.',
    example: null,
  }),
});
DriftList.register(requestExamples, { example: { board_id: 1, limit: 20 } });
export type DriftList = z.output<typeof DriftList>;
export const DriftPage = pageOf('projects', Drift);
