/**
 * Makes an element: `element('a', { href: '#/' }, 'Introduction')`. A function is an event handler; false and undefined leave an
 * attribute out. Texts are never read as HTML.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | boolean | undefined | ((event: any) => unknown)>} attributes
 * @param {...(Node | string | undefined)} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(key.replace(/^on/, ''), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/**
 * The element of the page with this id.
 * @param {string} id
 */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * The texts of the document have paragraphs, and code in backticks.
 * @param {string} text
 */
export const paragraphs = (text) => text.split('\n\n').map((part) => element('p', {}, ...inline(part)));

/** @param {string} text */
export const inline = (text) =>
  text.split('`').map((part, index) => (index % 2 === 1 ? element('code', {}, part) : part));

/**
 * A labelled field of a form.
 * @param {string} label
 * @param {Record<string, string | boolean | undefined>} attributes
 * @param {string} [hint]
 */
export function field(label, attributes, hint) {
  const input = element('input', { ...attributes, class: 'input' });
  const text = element('span', { class: 'label' }, label);
  const more = hint ? element('span', { class: 'hint' }, ...inline(hint)) : undefined;
  return { input, label: element('label', { class: 'field' }, text, input, more) };
}

/**
 * Runs a task unless the last one of this element is still under way: pressing a button twice sends once.
 * @param {HTMLElement} place
 * @param {() => Promise<unknown>} task
 */
export async function whileBusy(place, task) {
  if (place.hasAttribute('aria-busy')) return;
  place.setAttribute('aria-busy', 'true');
  try {
    await task();
  } finally {
    place.removeAttribute('aria-busy');
  }
}
