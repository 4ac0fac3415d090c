import { z } from 'zod';
import type { EventType } from '../../../shared/event.ts';
import { storedChoice } from '../../../shared/fields.ts';
import {
  PreviewLine,
  Rollout,
  RolloutGet,
  RolloutList,
  RolloutPage,
  RolloutPlan,
  RolloutPreview,
  RolloutReport,
  RolloutTargetPage,
  TARGET_STATES,
} from '../../../shared/rollout.ts';
import { RELEASE_LEVEL } from '../../domain/template/release.ts';
import {
  abortRollout,
  advanceRollout,
  pauseRollout,
  planRollout,
  resumeRollout,
  retryRollout,
  rollBack,
  startRollout,
} from '../../domain/template/rollout.ts';
import { getRollout, listRollouts, previewOfProject, reportRollout } from '../../domain/template/rolloutReport.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const oneRollout = z.object({ rollout: Rollout });

type Texts = {
  message: string;
  summary: string;
  description: string;
  event: EventType;
  opens?: boolean;
  isDestructive?: true;
};

/** A call that changes the state of a rollout. */
const changing = (verb: string, { event, opens = false, isDestructive, ...texts }: Texts) =>
  rest(superadminProcedure, `/services/operations/v1/admin/rollouts/${verb}`, texts)
    .meta({
      isDestructive,
      events: [event],
      level: RELEASE_LEVEL,
      reasons: opens ? ['rollout_state', 'rollout_open'] : ['rollout_state'],
    })
    .input(RolloutGet)
    .output(oneRollout);

export const rolloutRouter = router({
  plan: rest(superadminProcedure, '/services/operations/v1/admin/rollouts/plan', {
    status: 201,
    message: 'Rollout planned.',
    summary: 'Plan a rollout',
    description:
      'Finds out what a release would do to each project with access; nothing changes there. `rollouts.report` has the plan by project, `rollouts.preview` field by field. A rollout brings fields of cards, too, and keeps what a project has edited. A plan can be started for a day.',
  })
    .meta({
      idempotency: 'inSteps',
      events: ['rollout.planned'],
      level: RELEASE_LEVEL,
      reasons: ['place_full', 'unknown_reference'],
    })
    .input(RolloutPlan)
    .output(oneRollout)
    .mutation(({ ctx, input }) => planRollout(ctx, input)),

  start: changing('start', {
    message: 'Rollout started.',
    summary: 'Start a rollout',
    description:
      'Starts a planned rollout. The service works on it in the background, stage by stage. A project that has changed since the plan is planned again, and is left out if it has gained a conflict. A board has one open rollout at a time.',
    event: 'rollout.started',
    opens: true,
    isDestructive: true,
  }).mutation(({ ctx, input }) => startRollout(ctx, input)),

  get: rest(superadminProcedure, '/services/operations/v1/admin/rollouts/get', {
    message: 'The rollout.',
    summary: 'Get a rollout',
    description: 'A rollout with its progress: how many projects are in which state.',
  })
    .input(RolloutGet)
    .output(oneRollout)
    .query(({ ctx, input }) => getRollout(ctx, input)),

  list: rest(superadminProcedure, '/services/operations/v1/admin/rollouts/list', {
    message: 'Rollouts.',
    summary: 'List rollouts',
    description: 'The rollouts of a master board, or of all, newest first.',
    namesRow: false,
  })
    .input(RolloutList)
    .output(RolloutPage)
    .query(({ ctx, input }) => listRollouts(ctx, input)),

  report: rest(superadminProcedure, '/services/operations/v1/admin/rollouts/report', {
    message: 'What the rollout does.',
    summary: 'Get the report of a rollout',
    description: 'What a rollout does, or did, to each project, with the error of those that failed.',
  })
    .input(RolloutReport)
    .output(RolloutTargetPage)
    .query(({ ctx, input }) => reportRollout(ctx, input)),

  preview: rest(superadminProcedure, '/services/operations/v1/admin/rollouts/preview', {
    message: 'What the rollout does to the project.',
    summary: 'Preview a rollout in a project',
    description:
      'Row by row and field by field: what a rollout would do to a project now or, after its turn, what it and its rollback did.',
  })
    .input(RolloutPreview)
    .output(
      z.object({
        state: storedChoice(TARGET_STATES).meta({ description: 'What happened to the project.' }),
        lines: z.array(PreviewLine).meta({ description: 'The rows and fields, up to 1,000; long texts are cut.' }),
      }),
    )
    .query(({ ctx, input }) => previewOfProject(ctx, input)),

  pause: changing('pause', {
    message: 'Rollout paused.',
    summary: 'Pause a rollout',
    description: 'Stops after the projects of the current step, which takes less than a second.',
    event: 'rollout.paused',
  }).mutation(({ ctx, input }) => pauseRollout(ctx, input)),

  resume: changing('resume', {
    message: 'Rollout resumed.',
    summary: 'Resume a rollout',
    description: 'Goes on after a pause, also after one that its limits have caused.',
    event: 'rollout.resumed',
    isDestructive: true,
  }).mutation(({ ctx, input }) => resumeRollout(ctx, input)),

  abort: changing('abort', {
    message: 'Rollout aborted.',
    summary: 'Abort a rollout',
    description:
      'Ends a rollout or discards a plan. Projects that have the release keep it: `rollouts.rollback` takes it back.',
    event: 'rollout.aborted',
    isDestructive: true,
  }).mutation(({ ctx, input }) => abortRollout(ctx, input)),

  advance: changing('advance', {
    message: 'Next stage begun.',
    summary: 'Begin the next stage of a rollout',
    description: 'Begins the next stage without waiting any longer.',
    event: 'rollout.advanced',
    isDestructive: true,
  }).mutation(({ ctx, input }) => advanceRollout(ctx, input)),

  retryFailed: changing('retry-failed', {
    message: 'Failed projects are tried again.',
    summary: 'Retry what failed in a rollout',
    description:
      'Tries the projects again that failed, held changes, or had gained a conflict since the plan, and no others. Fields in conflict stay as the project has them.',
    event: 'rollout.retried',
    opens: true,
    isDestructive: true,
  }).mutation(({ ctx, input }) => retryRollout(ctx, input)),

  rollback: changing('rollback', {
    message: 'Rollback started.',
    summary: 'Roll a rollout back',
    description:
      'Restores what the rollout changed and the project has not changed since, and removes what it added and nobody has touched; the report says what stays. These contents are pinned: nothing brings them to the project again until they change, or an owner unpins them.',
    event: 'rollout.rollback_started',
    opens: true,
    isDestructive: true,
  }).mutation(({ ctx, input }) => rollBack(ctx, input)),
});
