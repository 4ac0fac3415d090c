import type { ActingProject } from '../context.ts';
import { forbidden, invalid } from '../errors.ts';

/** An id in a request, and the project that what it names is of: null if it names nothing. */
export type Reference = { field: string; id: number | null | undefined; project_id: number | null };

/** What a request refers to must exist, and be of the project that the caller acts in. */
export function mustBeOfProject(project: ActingProject, references: Reference[]): void {
  const sent = references.filter(({ id }) => id != null);

  const unknown = sent.filter(({ project_id }) => project_id === null);
  if (unknown.length > 0)
    throw invalid(Object.fromEntries(unknown.map(({ field }) => [field, 'names nothing that exists'])));

  const foreign = sent.find(({ project_id }) => project_id !== project.id);
  if (foreign) throw forbidden(`${foreign.field} names something outside this project.`);
}
