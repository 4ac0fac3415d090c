import type { Operation } from '@trpc/client';
import type { FailedCall } from './errors.ts';

/** What the links know about a call. */
export type CallContext = FailedCall & { projectId?: number | undefined };

export const contextOf = ({ context }: Pick<Operation, 'context'>) => context as CallContext;
