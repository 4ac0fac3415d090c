import { afterEach, describe, expect, it, vi } from 'vitest';
import { confirmSending } from '../../server/web/pages/api/confirmDialog.js';

/** As much of a browser's document as the dialog needs. */
class FakeElement {
  children: (FakeElement | string)[] = [];
  returnValue = '';
  listeners: Record<string, () => void> = {};
  isShown = false;
  addEventListener(name: string, listener: () => void) {
    this.listeners[name] = listener;
  }
  setAttribute() {}
  append(...children: (FakeElement | string)[]) {
    this.children.push(...children);
  }
  remove() {
    this.isShown = false;
  }
  showModal() {
    this.isShown = true;
  }
  close(value?: string) {
    if (value !== undefined) this.returnValue = value;
    this.listeners.close?.();
  }
}

const textOf = (part: FakeElement | string): string =>
  typeof part === 'string' ? part : part.children.map(textOf).join('');

/** All elements in an element, and itself. */
const allIn = (part: FakeElement | string): FakeElement[] =>
  typeof part === 'string' ? [] : [part, ...part.children.flatMap(allIn)];

function givenDocument() {
  const body = new FakeElement();
  vi.stubGlobal('document', { body, createElement: () => new FakeElement() });
  const press = (name: string) =>
    allIn(body)
      .find((part) => part.listeners.click && textOf(part) === name)
      ?.listeners.click?.();
  return { body, press, dialog: () => body.children[0] as FakeElement };
}

type Asked = Parameters<typeof confirmSending>[0];
const DELETION = { summary: 'Delete a board', 'x-destructive': true } as Asked;

afterEach(() => vi.unstubAllGlobals());

describe('the API page asks', () => {
  it('before what is destructive', async () => {
    const { dialog, press } = givenDocument();

    const sending = confirmSending(DELETION);
    expect(dialog().isShown).toBe(true);
    expect(textOf(dialog())).toContain('Delete a board?');
    expect(textOf(dialog())).toMatch(/Send it.*Cancel/);
    press('Send it');

    expect(await sending).toBe(true);
    expect(dialog().isShown).toBe(false);
  });

  it('and sends nothing after Cancel, or when the dialog is closed', async () => {
    const { dialog, press } = givenDocument();
    const cancelled = confirmSending(DELETION);
    press('Cancel');
    expect(await cancelled).toBe(false);

    givenDocument();
    const closed = confirmSending(DELETION);
    (document.body as unknown as FakeElement).children.forEach((part) => void (part as FakeElement).close());
    expect(await closed).toBe(false);
    expect(dialog().returnValue).toBe('');
  });

  it('nothing before other operations', async () => {
    const { body } = givenDocument();

    expect(await confirmSending({ summary: 'Restore a board' } as Asked)).toBe(true);
    expect(body.children).toEqual([]);
  });
});
