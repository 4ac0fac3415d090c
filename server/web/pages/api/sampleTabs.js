import { element } from './dom.js';
import { codeSample } from './highlight.js';
import { SAMPLES } from './samples.js';

/** @import { ApiRequest } from './samples.js' */

/** The language that was chosen last, also for other operations. */
let [chosen] = SAMPLES;

/** The request as code, with a choice of the language. */
export function samplesOf() {
  const code = element('div', {});
  /** @type {() => ApiRequest} */
  let request;

  const show = () => {
    try {
      code.replaceChildren(codeSample(chosen.name, chosen.write(request())));
    } catch {
      code.replaceChildren(element('p', { class: 'failure' }, 'The body is not valid JSON.'));
    }
  };
  const choices = SAMPLES.map((sample) => {
    const onchange = () => {
      chosen = sample;
      show();
    };
    const input = element('input', { type: 'radio', name: 'language', checked: sample === chosen, onchange });
    return element('label', {}, input, sample.name);
  });
  const hint = element(
    'p',
    { class: 'hint' },
    'The token is read from the environment variable ',
    element('code', {}, 'TOKEN'),
    '.',
  );
  const legend = element('legend', {}, 'Language');
  return {
    place: element('div', {}, element('fieldset', { class: 'tabs' }, legend, ...choices), code, hint),
    show: (/** @type {() => ApiRequest} */ next) => {
      request = next;
      show();
    },
  };
}
