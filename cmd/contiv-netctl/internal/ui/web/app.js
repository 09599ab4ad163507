// The frame of the page: which view is shown, when its data is requested, and the message if no reply arrives.

import { clock, command, count, empty, h, show } from "./dom.js";
import * as drops from "./drops.js";
import * as events from "./events.js";
import * as topology from "./topology.js";
import * as trace from "./trace.js";
import * as workloads from "./workloads.js";

const views = { topology, workloads, drops, events, trace };
const main = document.getElementById("main");
const state = document.getElementById("state");
const pause = document.getElementById("pause");

const session = { trace: false, version: "" };
let name = "", path = [], paused = false, timer = 0, round = 0, failing = false;
const known = new Map(); // by URL: { tag, data }

// get requests data from the server, which does not send a reply again that has not changed.
export async function get(url) {
  const before = known.get(url);
  const response = await fetch(url, { cache: "no-store", headers: before ? { "If-None-Match": before.tag } : {} });
  if (response.status === 304) return before.data;
  const data = await response.json().catch(() => ({ error: `the answer is not JSON (${response.status})` }));
  if (!response.ok) throw Object.assign(new Error(data.error || `status ${response.status}`), { status: response.status });
  known.delete(url);
  known.set(url, { tag: response.headers.get("ETag") || "", data });
  while (known.size > 50) known.delete(known.keys().next().value);
  return data;
}

export async function post(url, body) {
  const response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const data = await response.json().catch(() => ({ error: `the answer is not JSON (${response.status})` }));
  if (!response.ok) throw Object.assign(new Error(data.error || `status ${response.status}`), { status: response.status });
  return data;
}

// draw renders the view again.
export function draw() {
  const view = views[name];
  if (view.ready()) show(main, view.render({ path, session }));
}

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const next = Object.hasOwn(views, parts[0]) ? parts[0] : "topology";
  const changed = next !== name;
  name = next;
  path = parts.slice(1);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${document.querySelector(`nav a[data-view=${name}]`).textContent} · Contiv`;
  if (changed) {
    document.querySelector("nav a[aria-current]").scrollIntoView({ block: "nearest", inline: "nearest" });
    if (!views[name].ready()) show(main, h("p", { class: "wait" }, "Asking the agents…"));
    scrollTo(0, 0);
  }
  draw();
  refresh();
}

// refresh requests the overview, which the head of the page shows, and the data of the view.
async function refresh() {
  clearTimeout(timer);
  const mine = ++round;
  let next = 2000;
  try {
    const overview = await get("api/overview");
    next = overview.nextMs || next;
    if (mine !== round) return;
    head(overview);
    await views[name].load({ get, overview, path, session });
    if (mine !== round) return;
    failing = false;
    draw();
  } catch (error) {
    if (mine !== round) return;
    failing = true;
    next = 3000;
    away(error);
  }
  if (!paused && !document.hidden) timer = setTimeout(refresh, next);
}

function head(overview) {
  const bad = overview.problems.filter((p) => p.unready).length;
  const health = bad ? "bad" : overview.problems.length ? "warning" : "good";
  const text = overview.problems.length ? count(overview.problems.length, "problem") : "all healthy";
  state.className = `pill ${health}`;
  state.title = `${overview.lines.filter((l) => l.ok).length} of ${overview.lines.length} checks pass`;
  if (state.textContent !== text) state.textContent = text;
  document.getElementById("from").textContent = `Reported by node ${overview.from} at ${clock(new Date())}${paused ? ", paused" : ""}`;
}

// away: the server or the agents do not respond.
function away(error) {
  state.className = "pill bad";
  state.textContent = "no reply";
  if (error.status === 403) {
    show(main, empty("This page has no key", "Open the address that ", h("code", {}, "contiv-netctl ui"), " has printed in its terminal. The key is valid for as long as the command runs."));
    return;
  }
  const gone = error instanceof TypeError;
  const box = gone
    ? empty("contiv-netctl ui does not respond", "The command that served this page has ended. Start it again and open the address that it prints: ", command("contiv-netctl ui"))
    : empty("The cluster does not respond", `${error.message}. Check that this agent runs. The page retries every 3 seconds.`);
  box.setAttribute("role", "alert");
  box.classList.add("error");
  const view = views[name];
  show(main, box, view.ready() && !gone ? h("div", { class: "old" }, view.render({ path, session })) : null);
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-act]");
  if (!target) return;
  const act = target.dataset.act;
  if (act === "copy") {
    navigator.clipboard?.writeText(target.dataset.arg).then(() => {
      target.textContent = "Copied";
      setTimeout(() => { target.textContent = "Copy"; }, 1500);
    });
    return;
  }
  views[name].actions?.[act]?.(target.dataset.arg, target, event);
});

// All elements that can be clicked can be reached by the keyboard, also in drawings.
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if ((event.key === "Enter" || event.key === " ") && target.getAttribute?.("role") === "button" && target.namespaceURI?.endsWith("svg")) {
    event.preventDefault();
    target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  }
  if (event.key === "Escape") views[name].actions?.close?.();
});

for (const kind of ["input", "change", "submit", "dragover", "drop", "paste"]) {
  document.addEventListener(kind, (event) => views[name].on?.(kind, event));
}

pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", paused);
  pause.textContent = paused ? "Go on" : "Pause";
  if (paused) clearTimeout(timer);
  else refresh();
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else if (!paused) refresh();
});

let resizing = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => { if (!failing) draw(); });
});
addEventListener("hashchange", route);

get("api/session").then((data) => {
  Object.assign(session, data);
  document.getElementById("version").textContent = `contiv-netctl ${data.version}`;
}).catch(() => {}).finally(route);
