import { collectionOf } from '../api/openapi/collection.ts';
import { openApiDocument } from '../api/openapi/document.ts';
import { writeJson } from './file.ts';

await writeJson('dist/deckhand.postman_collection.json', collectionOf(openApiDocument()));
