import { type Call, callsOf, inProject, OPERATIONS, placed, type Row } from '../call.ts';

/** The owner of projects 1, the default, and 2 names a row of either, with and without the header. */
const eachWay = (body: (row: number) => object, [first, second]: [number, number]): Row[] => [
  ['row of the second project', 'owner', body(second)],
  ['row of the second project, X-Project-Id', 'owner', body(second), inProject(2)],
  ['row of the first project, X-Project-Id of the second', 'owner', body(first), inProject(2)],
];

/** Last, since the ids of other rows would depend on which of them create one. */
export const twoProjects: Call[] = [
  ...callsOf(
    `${OPERATIONS}/boards/get`,
    eachWay((id) => ({ id }), [2, 4]),
  ),
  ...callsOf(
    `${OPERATIONS}/cards/create`,
    eachWay((group_id) => ({ title: 'A card', group_id }), [7, 5]),
  ),
  ...callsOf(
    `${OPERATIONS}/comments/create`,
    eachWay((card_id) => ({ card_id, comment: 'Here' }), [16, 11]),
  ),
  ...callsOf(
    `${OPERATIONS}/groups/update`,
    eachWay((id) => ({ id, icon: 'star' }), [7, 6]),
  ),
  ...callsOf(`${OPERATIONS}/groups/reorder`, [
    ...eachWay((id) => ({ groups: placed([id, 4]) }), [7, 5]),
    ['rows of both projects', 'owner', { groups: placed([7, 1], [5, 1]) }],
  ]),
  ...callsOf(
    `${OPERATIONS}/cards/delete`,
    eachWay((id) => ({ id }), [16, 14]),
  ),
];
