export const PRIORITIES = ['low', 'normal', 'high', 'urgent'] as const;
