/** The client for browsers is bundled from client/client.ts when the service is packed, or first served. */
export * from '../../../client/client.ts';
