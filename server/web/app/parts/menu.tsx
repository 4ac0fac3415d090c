import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { set } from './button.tsx';

type MenuProps = { label: string; children: ComponentChildren; content: ComponentChildren; class?: string };

/**
 * A button that opens a list of buttons and links. The arrow keys go through them; Escape, a click elsewhere, or a choice closes it.
 * `content` is what the button shows.
 */
export function Menu({ label, children, content, class: name = 'icon' }: MenuProps) {
  const isOpen = useSignal(false);
  return (
    <div class="menu-place">
      <button
        type="button"
        class={name}
        aria-label={label}
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.peek();
        }}
      >
        {content}
      </button>
      {isOpen.value && <MenuList onClose={set(isOpen, false)}>{children}</MenuList>}
    </div>
  );
}

/** A component of its own, since a board has a thousand menus that are closed. */
function MenuList({ onClose, children }: { onClose: () => void; children: ComponentChildren }) {
  const list = useRef<HTMLDivElement>(null);
  const items = () => [...(list.current?.querySelectorAll<HTMLElement>('a, button') ?? [])];
  const close = () => {
    list.current?.parentElement?.querySelector('button')?.focus();
    onClose();
  };
  useEffect(() => {
    items()[0]?.focus();
    const closeOutside = ({ target }: Event) => {
      if (!list.current?.parentElement?.contains(target as Node)) onClose();
    };
    document.addEventListener('pointerdown', closeOutside);
    return () => document.removeEventListener('pointerdown', closeOutside);
  }, []);

  const move = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const all = items();
    all[(all.indexOf(document.activeElement as HTMLElement) + step + all.length) % all.length]?.focus();
  };
  return (
    <div class="menu-list" ref={list} onClick={close} onKeyDown={move}>
      {children}
    </div>
  );
}
