import { z } from 'zod';
import {
  ChangedRule,
  EndedCredentials,
  IdentityIssuer,
  IdentityRule,
  IssuerChoice,
  IssuerCreate,
  IssuerPage,
  RuleChoice,
  RuleCreate,
  RulePage,
  RuleUpdate,
} from '../../../shared/identityRule.ts';
import { Page } from '../../../shared/paging.ts';
import {
  createIssuer,
  createRule,
  deleteIssuer,
  deleteRule,
  listIssuers,
  listRules,
  updateRule,
} from '../../domain/account/identityRule.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

/** Nodes of the version before would list the credentials of rules as API keys. */
const level = 3;

export const identityIssuerRouter = router({
  create: rest(superadminProcedure, '/services/platforms/v1/identity-issuers/create', {
    status: 201,
    message: 'Issuer created.',
    summary: 'Add an issuer of tokens',
    description:
      'Adds an issuer whose tokens programs may exchange, by rules. Its keys are found by its discovery document, at `jwks_uri`, or are given as `jwks`.',
  })
    .meta({
      proof: 'inInput',
      events: ['identity_issuer.created'],
      level,
      reasons: ['already_exists', 'place_full'],
    })
    .input(IssuerCreate)
    .output(z.object({ issuer: IdentityIssuer }))
    .mutation(({ ctx, input }) => createIssuer(ctx, input)),

  list: rest(superadminProcedure, '/services/platforms/v1/identity-issuers/list', {
    message: 'Issuers.',
    summary: 'List issuers of tokens',
    description: 'The issuers whose tokens programs may exchange, page by page.',
  })
    .input(Page)
    .output(IssuerPage)
    .query(({ ctx, input }) => listIssuers(ctx, input)),

  delete: rest(superadminProcedure, '/services/platforms/v1/identity-issuers/delete', {
    message: 'Issuer deleted.',
    summary: 'Delete an issuer of tokens',
    description: 'Deletes an issuer with its rules. Their credentials end at once.',
  })
    .meta({ level, isDestructive: true, events: ['identity_issuer.deleted', 'webhook.disabled'] })
    .input(IssuerChoice)
    .output(EndedCredentials)
    .mutation(({ ctx, input }) => deleteIssuer(ctx, input)),
});

/** The scopes that credentials can have come from all other routers. */
export const identityRuleRouterFor = (scopes: string[]) =>
  router({
    create: rest(superadminProcedure, '/services/platforms/v1/identity-rules/create', {
      status: 201,
      message: 'Rule created.',
      summary: 'Create a rule for tokens of an issuer',
      description:
        'With `auth.exchange`, programs turn a token of the issuer with this audience, subject and claims into a credential of a service account, for a short time.',
      namesRow: false,
    })
      .meta({
        proof: 'inInput',
        events: ['identity_rule.created'],
        level,
        reasons: ['unknown_reference', 'place_full'],
      })
      .input(RuleCreate(scopes))
      .output(z.object({ rule: IdentityRule }))
      .mutation(({ ctx, input }) => createRule(ctx, input)),

    list: rest(superadminProcedure, '/services/platforms/v1/identity-rules/list', {
      message: 'Rules.',
      summary: 'List rules for tokens',
      description: 'The rules for tokens of all issuers, page by page.',
    })
      .input(Page)
      .output(RulePage)
      .query(({ ctx, input }) => listRules(ctx, input)),

    update: rest(superadminProcedure, '/services/platforms/v1/identity-rules/update', {
      message: 'Rule updated.',
      summary: 'Update a rule for tokens',
      description:
        'Changes the sent fields of a rule. Unless only its name changes, its credentials end at once: programs exchange again.',
    })
      .meta({
        proof: 'inInput',
        events: ['identity_rule.updated', 'webhook.disabled'],
        level,
        reasons: ['unknown_reference'],
      })
      .input(RuleUpdate(scopes))
      .output(ChangedRule)
      .mutation(({ ctx, input }) => updateRule(ctx, input)),

    delete: rest(superadminProcedure, '/services/platforms/v1/identity-rules/delete', {
      message: 'Rule deleted.',
      summary: 'Delete a rule for tokens',
      description: 'Deletes a rule. Its credentials end at once.',
    })
      .meta({ level, isDestructive: true, events: ['identity_rule.deleted', 'webhook.disabled'] })
      .input(RuleChoice)
      .output(EndedCredentials)
      .mutation(({ ctx, input }) => deleteRule(ctx, input)),
  });
