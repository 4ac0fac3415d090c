import { Board } from './entities/board.ts';
import { Card, TourDismissal } from './entities/card.ts';
import { Comment } from './entities/comment.ts';
import { Deletion } from './entities/deletionRecord.ts';
import { Erasure, Export, ExportPart } from './entities/erasure.ts';
import { AuditEntry, Event } from './entities/event.ts';
import { Group } from './entities/group.ts';
import { IdempotencyKey, IdempotencyUsage } from './entities/idempotencyKey.ts';
import { IdentityIssuer, IdentityRule, UsedIdentityToken } from './entities/identityRule.ts';
import { Invitation } from './entities/invitation.ts';
import { ApiKey } from './entities/key.ts';
import { Mail, MailLink } from './entities/mail.ts';
import { Platform, Project, ProjectTool } from './entities/platform.ts';
import { ProjectTemplate, Release, ReleaseRow, TemplateRow } from './entities/release.ts';
import { Rollout, RolloutChange, RolloutTarget } from './entities/rollout.ts';
import { Checkout, Plan, Subscription } from './entities/subscription.ts';
import { Tag } from './entities/tag.ts';
import { TemplateOutcome, TemplateRun } from './entities/templateRun.ts';
import { Theme, ThemeVersion } from './entities/theme.ts';
import { Identity, Member, RecoveryCode, Session, SsoFlow, UsedLogoutToken, User } from './entities/user.ts';
import { Webhook, WebhookDelivery } from './entities/webhook.ts';

/** One for each table. */
export const entities = [
  Platform,
  Project,
  ProjectTool,
  User,
  RecoveryCode,
  Identity,
  Session,
  SsoFlow,
  UsedLogoutToken,
  Member,
  Invitation,
  Mail,
  MailLink,
  IdentityIssuer,
  IdentityRule,
  UsedIdentityToken,
  ApiKey,
  Board,
  Group,
  Tag,
  Card,
  TourDismissal,
  Comment,
  Deletion,
  Plan,
  Subscription,
  Checkout,
  Theme,
  ThemeVersion,
  TemplateRow,
  Release,
  ReleaseRow,
  ProjectTemplate,
  Rollout,
  RolloutTarget,
  RolloutChange,
  TemplateRun,
  TemplateOutcome,
  IdempotencyKey,
  IdempotencyUsage,
  Event,
  AuditEntry,
  Webhook,
  WebhookDelivery,
  Erasure,
  Export,
  ExportPart,
];
