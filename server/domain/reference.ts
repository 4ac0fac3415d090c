import type { ActingProject } from '../context.ts';
import { forbidden, invalid } from '../errors.ts';

/** An id in a request, and the project of its row; null if the row does not exist. */
export type Reference = { field: string; id: number | null | undefined; project_id: number | null };

/** Throws unless all referenced rows exist (422) and are in the caller's project (403). */
export function mustBeOfProject(project: ActingProject, references: Reference[]): void {
  const sent = references.filter(({ id }) => id != null);

  const unknown = sent.filter(({ project_id }) => project_id === null);
  if (unknown.length > 0) throw invalid(Object.fromEntries(unknown.map(({ field }) => [field, 'does not exist'])));

  const foreign = sent.find(({ project_id }) => project_id !== project.id);
  if (foreign) throw forbidden(`${foreign.field} is not in this project.`);
}
