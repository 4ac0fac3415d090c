/** For the tests of projects that use the client: the package has it as `deckhand-client/testing`. */
export type { BoardState, TemplateState } from './boards.ts';
export type { Clock, Duration } from './clock.ts';
export { type Deckhand, type StartOptions, startDeckhand } from './deckhand.ts';
export { type FakeCall, type FakeClient, type FakeResults, fakeClient } from './fake.ts';
export { joinDeckhand, type SharedDeckhand } from './join.ts';
export { type RefusalState, refusalOf } from './refusal.ts';
export { aBoard, aCard, aComment, aGroup, anEvent, aProject, aTag } from './rows.ts';
export type { Rows } from './rowTypes.ts';
export type { FaultInput, FaultName } from './sandbox/faults.ts';
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox/sandbox.ts';
export type { SandboxPerson, SandboxState } from './sandbox/states.ts';
export type { TestSettings } from './settings.ts';
export type {
  Event,
  FullBoard,
  MemberState,
  Person,
  PersonState,
  Plan,
  Project,
  ProjectChoice,
  ProjectState,
  Service,
  ServiceState,
  States,
  Trial,
} from './states.ts';
