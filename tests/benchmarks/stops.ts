/**
 * Loaded into a server (`NODE_OPTIONS=--import`) to tell, on SIGUSR2, the longest stop of its event loop since the last time:
 * the CPU time that its main thread spent between two turns. In CPU time, so that what else the machine does makes no stops.
 */

let longest = 0;
let before = spentMilliseconds();
setInterval(() => {
  const now = spentMilliseconds();
  longest = Math.max(longest, now - before);
  before = now;
}, 1).unref();

process.on('SIGUSR2', () => {
  console.log(`longest stop: ${longest.toFixed(1)} ms`);
  longest = 0;
});

function spentMilliseconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
