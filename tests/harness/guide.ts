/** The code blocks of a page of the documentation, and the script that a reader would type. */

export type Block = {
  language: string;
  code: string;
  /** From the line before it: "Save this as `import.ts`:". */
  fileName: string | undefined;
};

const BLOCK = /^(?:Save this as `(?<fileName>[\w.-]+)`[^\n]*:\n\n)?```(?<language>\w*)\n(?<code>.*?)^```$/gms;

export const blocksOf = (page: string): Block[] =>
  [...page.matchAll(BLOCK)].map(({ groups }) => groups as unknown as Block);

/** A command, and what the page says that it prints: the `text` block after it. */
export type Step = { script: string; shown: string };

export function stepsOf(blocks: Block[], isRun: (command: string) => boolean): Step[] {
  const steps: Step[] = [];
  for (const { language, code, fileName } of blocks) {
    if (fileName) steps.push({ script: `cat > ${fileName} <<'END OF FILE'\n${code}END OF FILE\n`, shown: '' });
    else if (language === 'sh') steps.push({ script: isRun(code.trim()) ? code : '', shown: '' });
    else if (language === 'text' && steps.at(-1)?.script) steps.at(-1)!.shown = code;
  }
  return steps.filter(({ script }) => script !== '');
}

const mark = (index: number) => `--- step ${index} ---`;

/** One script for all steps, since later ones use variables of earlier ones. */
export const scriptOf = (steps: Step[]) =>
  ['exec 2>&1', ...steps.map(({ script }, index) => `printf '\\n%s\\n' '${mark(index)}'\n${script}`)].join('\n');

/** The shown lines that a run of the script did not print. `…` stands for anything, and the number of spaces does not matter. */
export function missingLines(steps: Step[], printed: string): string[] {
  return steps.flatMap(({ shown }, index) => {
    const [, after = ''] = printed.split(`${mark(index)}\n`);
    const lines = after.split(`\n${mark(index + 1)}`)[0]!.split('\n');
    let next = 0;
    return linesOf(shown).filter((line) => {
      const found = lines.findIndex((each, at) => at >= next && patternOf(line).test(each));
      if (found >= 0) next = found + 1;
      return found < 0;
    });
  });
}

const linesOf = (text: string) => text.split('\n').filter((line) => line.trim() !== '');

const patternOf = (line: string) => {
  const escaped = line.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^\\s*${escaped.replaceAll('…', '.*').replaceAll(/\s+/g, '\\s+')}\\s*$`);
};
