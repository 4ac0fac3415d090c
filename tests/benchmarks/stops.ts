/**
 * Loaded into a server (`NODE_OPTIONS=--import`) to print, on SIGUSR2, the longest stop of its event loop since the last time:
 * the CPU time of its main thread between two turns. CPU time, since wall time would include other load on the machine.
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
