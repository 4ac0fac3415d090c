import { describe } from 'vitest';
import { hasChanges, testCommandsOf } from '../harness/documentation.ts';

describe('the changes of the documentation', () => testCommandsOf(hasChanges));
