/** Values as literals of programming languages, for the code samples. */

/**
 * @typedef {{
 *   constants: Record<'true' | 'false' | 'null', string>,
 *   list: [string, string],
 *   map: [string, string],
 *   emptyMap: string,
 *   text: (value: string) => string,
 *   pair: (key: string, value: string) => string,
 * }} Language
 */

/** @type {Language} */
export const TYPESCRIPT = {
  constants: { true: 'true', false: 'false', null: 'null' },
  list: ['[', ']'],
  map: ['{', '}'],
  emptyMap: '{}',
  text: quote,
  pair: (key, value) => `${/^[a-z_]\w*$/i.test(key) ? key : quote(key)}: ${value}`,
};

/** @type {Language} */
export const PYTHON = {
  ...TYPESCRIPT,
  constants: { true: 'True', false: 'False', null: 'None' },
  pair: (key, value) => `${quote(key)}: ${value}`,
};

/** @type {Language} */
export const PHP = {
  ...TYPESCRIPT,
  map: ['[', ']'],
  // An empty array would be sent as a list.
  emptyMap: 'new stdClass()',
  text: (value) => `'${value.replace(/[\\']/g, '\\$&')}'`,
  pair: (key, value) => `${PHP.text(key)} => ${value}`,
};

/**
 * @param {unknown} value
 * @param {Language} language
 * @param {string} indent the indentation of the line that it begins in
 * @param {string} step the indentation of one level
 * @returns {string}
 */
export function literal(value, language, indent = '', step = '  ') {
  if (typeof value === 'string') return language.text(value);
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'object' || value === null) {
    return language.constants[/** @type {'true' | 'false' | 'null'} */ (String(value))];
  }

  const isList = Array.isArray(value);
  const deeper = indent + step;
  const parts = isList
    ? value.map((item) => literal(item, language, deeper, step))
    : Object.entries(value).map(([key, item]) => language.pair(key, literal(item, language, deeper, step)));
  const [open, close] = isList ? language.list : language.map;
  if (parts.length === 0) return isList ? open + close : language.emptyMap;
  return `${open}\n${parts.map((part) => `${deeper}${part},\n`).join('')}${indent}${close}`;
}

/**
 * The escapes of JSON mean the same in TypeScript and Python.
 * @param {string} value
 */
function quote(value) {
  return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}
