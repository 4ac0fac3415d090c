import { openApiDocument } from '../http/openapi.ts';
import { writeJson } from './file.ts';

await writeJson('dist/openapi.json', openApiDocument());
