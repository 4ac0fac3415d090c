/** Why a call was refused, for programs: stable names, unlike messages. */
export const REASONS = {
  last_owner: 'A project keeps at least one owner.',
  not_a_member: 'The user is not a member of the project.',
  already_a_member: 'The user is already a member of the project.',
  not_registered: 'No user has this e-mail address.',
  several_parents: 'The rows to reorder do not have the same board or project.',
  bad_request: 'The request can not be read, or is not possible.',
  not_signed_in: 'The token is missing, expired, revoked or invalid.',
  forbidden: 'The caller may not do this.',
  not_a_superadmin: 'Only superadmins may do this.',
  role_missing: 'The role in the project is too low.',
  no_project_access: 'The caller is not a member of the selected project, or of any.',
  other_platform: 'The theme belongs to a platform of which the caller owns no project.',
  other_project: 'The row belongs to a project that the caller is not a member of, or did not select.',
  no_account: 'The operator at the command line has no account: choose one.',
  not_found: 'The row does not exist, or was deleted.',
  wrong_method: 'The path exists, with another method.',
  invalid_input: 'Fields are invalid: see `errors`.',
  too_many_requests: 'Too many calls.',
  fault: 'An error in the service.',
} as const;

export type Reason = keyof typeof REASONS;
