import type { Call } from './call.ts';
import { authentication, signIns } from './calls/authentication.ts';
import { firstBoards, lastBoards, tours } from './calls/boards.ts';
import { cards } from './calls/cards.ts';
import { details } from './calls/details.ts';
import { groups } from './calls/groups.ts';
import { platform } from './calls/platform.ts';
import { rpc, signOuts } from './calls/rpc.ts';
import { masterBoards, masterCards, masterDeletes, masterGroups } from './calls/templates.ts';
import { twoProjects } from './calls/twoProjects.ts';
import { bodies, limits, usual } from './calls/usual.ts';

/** All recorded calls, in the order in which they are made: the ids in later answers depend on the calls before. */
export const calls: Call[] = [
  ...signIns,
  ...firstBoards,
  ...masterBoards,
  ...masterGroups,
  ...masterCards,
  ...usual,
  ...bodies,
  ...cards,
  ...groups,
  ...details,
  ...tours,
  ...rpc,
  ...masterDeletes,
  ...platform,
  ...authentication,
  ...lastBoards,
  ...twoProjects,
  ...signOuts,
  ...limits,
];
