import { callbackError } from './errors.ts';

export function traceHeaders(traceparent: (() => string | undefined) | undefined): Record<string, string> {
  if (!traceparent) return activeTrace();
  try {
    const given = traceparent();
    return given ? { traceparent: given } : {};
  } catch (error) {
    throw callbackError('traceparent', error);
  }
}

type Carrier = Record<string, string>;

/** The global that `@opentelemetry/api` registers; the client does not depend on that package. */
type OpenTelemetry = {
  context?: { active: () => unknown };
  propagation?: {
    inject: (
      context: unknown,
      carrier: Carrier,
      setter: { set: (to: Carrier, name: string, value: string) => void },
    ) => void;
  };
};

function activeTrace(): Carrier {
  const { context, propagation } = (globalThis as { [api]?: OpenTelemetry })[api] ?? {};
  if (!context || !propagation) return {};
  const sent: Carrier = {};
  try {
    const set = (to: Carrier, name: string, value: string) => {
      // Not `baggage`, which is not meant for this service.
      if (name === 'traceparent' || name === 'tracestate') to[name] = value;
    };
    propagation.inject(context.active(), sent, { set });
  } catch {
    // A broken propagator must not fail the call.
  }
  return sent;
}
const api: unique symbol = Symbol.for('opentelemetry.js.api.1');
