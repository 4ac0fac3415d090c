import { reach } from '../reach.js';
import { needsSignIn } from './apiDocument.js';
import { confirmSending } from './confirmDialog.js';
import { element, field, whileBusy } from './dom.js';
import { keepTexts } from './drafts.js';
import { codeSample } from './highlight.js';
import { addressOf } from './samples.js';
import { samplesOf } from './sampleTabs.js';
import { currentSession, followSession } from './session.js';
import { openSignIn } from './signInDialog.js';

/** @import { ApiRequest } from './samples.js' */
/** @import { Described } from './apiDocument.js' */

/**
 * The form that sends a request, with the response, and the same request as code.
 * @param {Described} operation
 */
export function tryIt(operation) {
  const parameters = (operation.parameters ?? []).map((parameter) => ({
    ...parameter,
    ...field(parameter.name, { autocomplete: 'off' }, parameter.description),
  }));
  const example = operation.requestBody?.content['application/json'].example;
  const body = example === undefined ? undefined : bodyField(JSON.stringify(example, null, 2));
  const place = element('div', { role: 'status', class: 'response' });
  const samples = samplesOf();

  /** Throws if the body is not JSON. */
  const request = () => requestOf(operation, parameters, body?.input.value);
  const showSamples = () => samples.show(request);
  const send = async () => {
    if (!(await confirmSending(operation))) return;
    place.replaceChildren(element('p', { class: 'hint' }, 'Sending…'));
    place.replaceChildren(...(await outcomeOf(request)));
  };
  const inputs = [...(body ? [body.input] : []), ...parameters.map(({ input }) => input)];
  keepTexts(operation.operationId, inputs);
  const form = element(
    'form',
    {
      oninput: showSamples,
      onsubmit: (event) => {
        event.preventDefault();
        whileBusy(form, send);
      },
      onkeydown: (event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
      },
    },
    body?.label,
    parameters.length > 0 ? optionalFields(parameters) : undefined,
    element('p', { class: 'send' }, element('button', { class: 'button' }, 'Send'), signInHint(operation)),
  );
  showSamples();
  const column = element(
    'div',
    { class: 'try' },
    element('h2', {}, 'Try it'),
    form,
    place,
    element('h2', {}, 'Code'),
    samples.place,
  );
  heights.observe(column);
  return column;
}

/** The form stays in view while the page scrolls, unless it is higher than the window: its end would be out of reach. */
function stickIfItFits() {
  const column = /** @type {HTMLElement | null} */ (document.querySelector('.try'));
  column?.classList.toggle('fits', column.offsetHeight < innerHeight - SPACE_AROUND);
}

const SPACE_AROUND = 110;
const heights = new ResizeObserver(stickIfItFits);
addEventListener('resize', stickIfItFits);

/** @param {string} text */
function bodyField(text) {
  const rows = String(Math.min(20, text.split('\n').length + 1));
  const input = element('textarea', { class: 'input code', rows, spellcheck: 'false' });
  input.value = text;
  return {
    input,
    label: element('label', { class: 'field' }, element('span', { class: 'label' }, 'Body (JSON)'), input),
  };
}

/** @param {ReturnType<typeof field>[]} fields */
function optionalFields(fields) {
  const open = fields.some(({ input }) => input.value !== '');
  return element(
    'details',
    { open },
    element('summary', {}, 'Optional parameters'),
    ...fields.map(({ label }) => label),
  );
}

/** @param {Described} operation */
function signInHint(operation) {
  const place = element('span', { class: 'hint' });
  if (!needsSignIn(operation)) return place;
  followSession(place, () => {
    const session = currentSession();
    const button = element('button', { type: 'button', class: 'link', onclick: openSignIn }, 'Sign in first');
    place.replaceChildren(session ? `as ${session.name}` : button);
  });
  return place;
}

/**
 * @param {Described} operation
 * @param {{ name: string, in: string, input: HTMLInputElement }[]} parameters
 * @param {string | undefined} body
 * @returns {ApiRequest}
 */
function requestOf(operation, parameters, body) {
  /** @param {string} place */
  const sent = (place) =>
    Object.fromEntries(
      parameters
        .filter((parameter) => parameter.in === place && parameter.input.value !== '')
        .map(({ name, input }) => [name, input.value]),
    );
  return {
    origin: location.origin,
    path: operation.path,
    query: sent('query'),
    headers: sent('header'),
    body: body === undefined || body.trim() === '' ? undefined : JSON.parse(body),
    clientCall: operation['x-client-call'],
    needsSignIn: needsSignIn(operation),
  };
}

/** @param {() => ApiRequest} request */
async function outcomeOf(request) {
  const start = performance.now();
  try {
    const { response, text } = await send(request());
    return responseView(response, text, Math.round(performance.now() - start));
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    const text = error instanceof SyntaxError ? `The body is not JSON: ${message}` : message;
    return [element('p', { class: 'failure' }, text)];
  }
}

/** @param {ApiRequest} request */
function send(request) {
  const { headers, body } = request;
  const token = currentSession()?.token;
  return reach(addressOf(request), {
    method: 'POST',
    headers: {
      ...headers,
      ...(body && { 'Content-Type': 'application/json' }),
      ...(token && request.needsSignIn && { Authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/**
 * @param {Response} response
 * @param {string} text
 * @param {number} milliseconds
 */
function responseView(response, text, milliseconds) {
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
  const shown = readable(text);
  const status = element('strong', { class: response.ok ? 'good' : 'bad' }, String(response.status));
  return [
    element('p', {}, status, ` in ${milliseconds} ms`),
    codeSample('Response', shown),
    element('details', {}, element('summary', {}, 'Headers'), element('pre', { tabindex: '0' }, headers)),
  ];
}

/** @param {string} text */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
