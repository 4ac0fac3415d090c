import { openApiDocument } from '../api/openapi/document.ts';
import { writeJson } from './file.ts';

await writeJson('dist/openapi.json', openApiDocument());
