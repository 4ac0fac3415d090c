import { scopesIn } from '../../domain/access/scopes.ts';
import { router } from '../trpc.ts';
import { accountRouter } from './account.ts';
import { auditRouter } from './audit.ts';
import { boardRouter } from './board.ts';
import { cardRouter, tourRouter } from './card.ts';
import { commentRouter } from './comment.ts';
import { eventRouter } from './event.ts';
import { groupRouter } from './group.ts';
import { identityIssuerRouter, identityRuleRouterFor } from './identityRule.ts';
import { keyRouterFor } from './key.ts';
import { mailRouter } from './mail.ts';
import { masterBoardRouter, templateRunRouter } from './masterBoard.ts';
import { masterCardRouter } from './masterCard.ts';
import { masterGroupRouter } from './masterGroup.ts';
import { memberRouter } from './member.ts';
import { platformRouter } from './platform.ts';
import { projectRouter } from './project.ts';
import { releaseRouter } from './release.ts';
import { rolloutRouter } from './rollout.ts';
import { planRouter, subscriptionRouter } from './subscription.ts';
import { tagRouter } from './tag.ts';
import { templateRouter } from './template.ts';
import { templateFileRouter } from './templateFile.ts';
import { themeRouter } from './theme.ts';
import { masterTrashRouter, trashRouter } from './trash.ts';
import { authRouter, userRouter } from './user.ts';
import { webhookRouter } from './webhook.ts';

const routers = {
  auth: authRouter,
  account: accountRouter,
  boards: boardRouter,
  groups: groupRouter,
  cards: cardRouter,
  comments: commentRouter,
  tags: tagRouter,
  tour: tourRouter,
  trash: trashRouter,
  masterBoards: masterBoardRouter,
  masterGroups: masterGroupRouter,
  masterCards: masterCardRouter,
  masterTrash: masterTrashRouter,
  templateRuns: templateRunRouter,
  releases: releaseRouter,
  rollouts: rolloutRouter,
  templates: templateRouter,
  templateFiles: templateFileRouter,
  subscriptions: subscriptionRouter,
  themes: themeRouter,
  platforms: platformRouter,
  projects: projectRouter,
  users: userRouter,
  members: memberRouter,
  plans: planRouter,
  events: eventRouter,
  audit: auditRouter,
  webhooks: webhookRouter,
  mails: mailRouter,
  identityIssuers: identityIssuerRouter,
};

/** Every scope that a key can have. */
export const SCOPES = scopesIn(routers);

/** Every procedure of the service; the client's types, the REST paths and the OpenAPI document all come from here. */
export const appRouter = router({
  ...routers,
  identityRules: identityRuleRouterFor(SCOPES),
  keys: keyRouterFor(SCOPES),
});

export type AppRouter = typeof appRouter;
