import { z } from 'zod';

/** Requests that work on the demo data, for inputs whose field examples alone don't make one. */
export const requestExamples = z.registry<{ example: z.$input }>();
