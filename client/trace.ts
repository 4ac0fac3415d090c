import { errorOfOwn } from './errors.ts';

/** The headers that name the trace of the caller. */
export function traceHeaders(traceparent: (() => string | undefined) | undefined): Record<string, string> {
  if (!traceparent) return activeTrace();
  try {
    const given = traceparent();
    return given ? { traceparent: given } : {};
  } catch (error) {
    throw errorOfOwn('traceparent', error);
  }
}

type Carrier = Record<string, string>;

/** What the program registered with `@opentelemetry/api`, which this client does not depend on. */
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
      // Others, such as `baggage`, are not for this service.
      if (name === 'traceparent' || name === 'tracestate') to[name] = value;
    };
    propagation.inject(context.active(), sent, { set });
  } catch {
    // A call does not fail because its trace is unknown.
  }
  return sent;
}
const api: unique symbol = Symbol.for('opentelemetry.js.api.1');
