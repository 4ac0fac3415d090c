import { FILE_SCHEMA_NAME, templateFileSchema } from '../../shared/templateFile.ts';
import { writeJson } from './file.ts';

await writeJson(`docs/${FILE_SCHEMA_NAME}`, templateFileSchema());
