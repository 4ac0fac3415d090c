import { collectionOf } from '../openapi/collection.ts';
import { openApiDocument } from '../openapi/document.ts';
import { writeJson } from './file.ts';

await writeJson('dist/deckhand.postman_collection.json', collectionOf(openApiDocument()));
