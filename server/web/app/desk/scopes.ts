import type { Role } from '../../../../shared/user.ts';

/** What a key with a scope may do. A test compares this with the scopes of the procedures. */
const AREAS: Record<string, Record<string, string>> = {
  boards: { read: 'read boards', write: 'change boards' },
  groups: { read: 'read groups', write: 'change groups' },
  cards: { read: 'read cards', write: 'change cards' },
  comments: { read: 'read comments', write: 'write and delete comments' },
  tags: { read: 'read tags', write: 'change tags' },
  trash: { read: 'read the trash' },
  tour: { write: 'dismiss and restart tours' },
  events: { read: 'follow what happens' },
  projects: { read: 'list your projects', write: 'change projects' },
  members: { read: 'list members', write: 'invite, change and remove members' },
  webhooks: { read: 'read webhooks and deliveries', write: 'change webhooks' },
  audit: { read: 'read the audit' },
  subscriptions: { read: 'read subscriptions', write: 'open checkouts' },
  plans: { read: 'list plans', write: 'change plans' },
  templates: { read: 'read templates and rollouts', write: 'change templates, hold and reset' },
  themes: { read: 'read themes', write: 'change themes' },
  grants: { write: 'do what needs your password otherwise: make owners and webhooks' },
  platforms: { read: 'list platforms', write: 'change platforms' },
  users: { read: 'list users', write: 'change users' },
  mails: { read: 'see which mails were sent', write: 'send failed mails again' },
};

/** By scope. */
export const SCOPES = new Map<string, string>([
  ...Object.entries(AREAS).flatMap(([area, verbs]) =>
    Object.entries(verbs).map(([verb, text]): [string, string] => [`${area}:${verb}`, text]),
  ),
  ['admin', 'act as a superadmin, in all projects'],
]);

const OF_SUPERADMINS = /^(platforms|users|mails):|^(projects|plans):write$|^admin$/;

const OF_OWNERS = /^(audit|webhooks|themes|plans|subscriptions):|^grants:write$/;
const OF_MEMBERS = /^(boards|groups|cards|comments|tags|templates):write$|^trash:read$/;

/** The scopes that a user has a use for; `role` is their highest one. */
export const scopesFor = ({ isSuperadmin, role }: { isSuperadmin: boolean; role: Role }) =>
  [...SCOPES].filter(([scope]) => {
    if (isSuperadmin) return true;
    if (OF_SUPERADMINS.test(scope) || (OF_OWNERS.test(scope) && role !== 'owner')) return false;
    return role !== 'viewer' || !OF_MEMBERS.test(scope);
  });
