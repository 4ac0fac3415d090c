const BAR_WIDTH = 30;

export function progressBar(done: number, total: number): string {
  const filled = Math.min(BAR_WIDTH, Math.floor((done / total) * BAR_WIDTH));
  return `[${'#'.repeat(filled).padEnd(BAR_WIDTH, '-')}]`;
}
