/** On narrow screens the sidebar is hidden until the menu button opens it. */
export function addMenu() {
  const button = /** @type {HTMLButtonElement} */ (document.querySelector('.menu'));
  const sidebar = /** @type {HTMLElement} */ (document.querySelector('#sidebar'));
  /** @param {boolean} isOpen */
  const show = (isOpen) => {
    button.setAttribute('aria-expanded', String(isOpen));
    sidebar.classList.toggle('open', isOpen);
  };

  button.addEventListener('click', () => show(!sidebar.classList.contains('open')));
  sidebar.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('a')) show(false);
  });
  document.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !sidebar.classList.contains('open')) return;
    show(false);
    button.focus();
  });
}
