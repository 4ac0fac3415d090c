import { copyButton } from './copy.js';
import { addMenu } from './menu.js';

addMenu();
for (const block of document.querySelectorAll('main pre')) {
  const place = document.createElement('div');
  place.className = 'sample';
  block.replaceWith(place);
  place.append(
    block,
    copyButton(() => block.textContent ?? ''),
  );
}
