// Asks the process. One request after the other, so that the browser needs one connection, which one worker of a cluster
// answers. What the user waits for goes before what the page asks by itself.

const LIMIT = 15000;

export function address(name, parameters = {}) {
  const target = new URL(name, import.meta.url);
  for (const [key, value] of Object.entries(parameters)) if (value) target.searchParams.set(key, value);
  return target;
}

async function send(name, parameters) {
  const answer = await fetch(address(name, parameters), { signal: AbortSignal.timeout(LIMIT) });
  if (!answer.ok) throw new Error((await answer.text()).trim().split("\n")[0]);
  return answer.json();
}

const waiting = [];
let busy = false;

async function work() {
  if (busy) return;
  busy = true;
  while (waiting.length) {
    const { name, parameters, done, failed } = waiting.shift();
    await send(name, parameters).then(done, failed);
  }
  busy = false;
}

export function ask(name, parameters, { urgent = false } = {}) {
  return new Promise((done, failed) => {
    waiting[urgent ? "unshift" : "push"]({ name, parameters, done, failed });
    work();
  });
}
