import type { TestProject } from 'vitest/node';
import { givenCluster } from '../faults/privateServer.ts';

/** A private server for the suites that make replicas of it. */
export default async function setup(project: TestProject) {
  const cluster = await givenCluster();
  project.provide('databaseUrlPrefix', Object.assign(new URL(cluster!.url), { pathname: '/deckhand_test_' }).href);
  return () => cluster!.remove();
}
