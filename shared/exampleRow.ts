import { z } from 'zod';

/** A complete row of a model, from the examples of its fields. What may be null is null, and lists are empty. */
export function exampleRow<Model extends z.ZodObject>(model: Model): z.output<Model> {
  const fields = Object.entries(model.shape).map(([name, field]) => [name, exampleValue(field)]);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

function exampleValue(field: z.core.$ZodType): unknown {
  const { def } = (field as z.core.$ZodTypes)._zod;
  const example = z.globalRegistry.get(field)?.example;

  switch (def.type) {
    case 'nullable':
      return null;
    case 'optional':
      return undefined;
    case 'union':
      return example ?? exampleValue(def.options[0] as z.core.$ZodType);
    case 'pipe':
      return exampleValue(def.out);
    case 'date':
      return new Date(example as string);
    case 'array':
      return [];
    case 'object':
      return exampleRow(field as z.ZodObject);
    case 'enum':
      return example ?? Object.values(def.entries)[0];
    case 'boolean':
      return example ?? false;
    case 'number':
      return example ?? 1;
    case 'string':
      return example ?? 'text';
    default:
      throw new Error(`No example is known for a field of the type ${def.type}.`);
  }
}
