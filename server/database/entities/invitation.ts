import { defineEntity, p } from '@mikro-orm/core';
import { ROLES } from '../../../shared/user.ts';
import { created, identity, refersTo } from './columns.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

/** A membership that waits for its user. It is kept by address, since there may be no user with it yet. */
export const Invitation = defineEntity({
  name: 'Invitation',
  tableName: 'invitations',
  properties: {
    id: identity(),
    project_id: () => refersTo(Project, 'project_id').deleteRule('cascade'),
    email: p.text(),
    role: p.enum([...ROLES]),
    /** Null for the operator at the command line. */
    invited_by: () => refersTo(User, 'invited_by').nullable().deleteRule('cascade'),
    ...created(),
  },
  uniques: [
    {
      name: 'invitations_project_id_email_unique',
      expression:
        'create unique index "invitations_project_id_email_unique" on "invitations" ("project_id", lower("email"))',
    },
  ],
  indexes: [
    {
      name: 'invitations_email_index',
      expression: 'create index "invitations_email_index" on "invitations" (lower("email"), "id")',
    },
    { properties: ['invited_by'] },
  ],
});
