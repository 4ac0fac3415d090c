import { useEffect } from 'preact/hooks';
import { oncePerBurst } from '../feed.ts';
import { onProjectEvent, project } from '../project.ts';

/** Reads a list again when something of these types happens in the project, or may have happened. */
export function useReload(types: RegExp, reload: () => unknown): void {
  useEffect(() => {
    const soon = oncePerBurst(reload);
    return onProjectEvent((event) => (!event || types.test(event.type)) && soon());
  }, [project.value?.id]);
}
