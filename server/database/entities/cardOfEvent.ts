/** The card that an event is about, for its history; null in other events. */
export const CARD_OF_EVENT = `(case split_part(type, '.', 1) when 'card' then subject_id when 'comment' then (data->>'card_id')::int end)`;
