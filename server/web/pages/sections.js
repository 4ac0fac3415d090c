/** A part of a guide under one heading. @typedef {{ href: string, guide: string, heading: string, text: string }} Section */

/**
 * The sections that have all words: first those with most of them in the heading, then those with most in the title of the guide.
 * @param {Section[]} sections
 * @param {string[]} words in lower case
 */
export function findSections(sections, words) {
  const found = sections.flatMap((section) => {
    const [heading, guide, text] = [section.heading, section.guide, section.text].map((part) => part.toLowerCase());
    /** @param {string | undefined} part */
    const count = (part) => words.filter((word) => part?.includes(word)).length;
    const hasAll = words.every((word) => [heading, guide, text].some((part) => part?.includes(word)));
    return hasAll ? { section, score: count(heading) * 100 + count(guide) * 10 + count(text) } : [];
  });
  return found.toSorted((one, other) => other.score - one.score).map(({ section }) => section);
}

/**
 * The text around the first word that it has, split at that word: before, the word, after.
 * @param {string} text
 * @param {string[]} words in lower case
 */
export function snippetOf(text, words) {
  const lower = text.toLowerCase();
  const [word = ''] = words.filter((one) => lower.includes(one));
  const at = lower.indexOf(word);
  const [start, end] = [Math.max(0, at - BEFORE), at + word.length];
  const before = `${start > 0 ? '…' : ''}${text.slice(start, at)}`;
  const after = `${text.slice(end, end + AFTER)}${end + AFTER < text.length ? '…' : ''}`;
  return word === '' ? [after] : [before, text.slice(at, end), after];
}

const BEFORE = 40;
const AFTER = 80;
