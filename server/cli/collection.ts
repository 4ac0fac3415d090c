import { collectionOf } from '../http/collection.ts';
import { openApiDocument } from '../http/openapi.ts';
import { writeJson } from './file.ts';

await writeJson('dist/deckhand.postman_collection.json', collectionOf(openApiDocument()));
