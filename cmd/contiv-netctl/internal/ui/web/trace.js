// The path of a packet: the sender's node, the network, the receiver's node, and the path of the reply.

import { draw, post } from "./app.js";
import { command, empty, h, mark, millis } from "./dom.js";

let data = null; // the report of contiv-netctl trace
let error = "";
let running = false;
const typed = { from: "", to: "", port: "" }; // contents of the form; kept while another view is shown
let names = { pods: [], services: [] };

export const ready = () => true;

export async function load({ get }) {
  const work = await get("api/workloads");
  names = { pods: work.pods.map((p) => p.namespace ? `${p.namespace}/${p.name}` : p.name), services: work.services.map((s) => `svc/${s.namespace}/${s.name}`) };
}

export const actions = {
  forget() {
    data = null;
    error = "";
    draw();
  },
};

// take loads a report that contiv-netctl trace -o json has written.
export function take(text) {
  try {
    const report = JSON.parse(text);
    if (!report.flow || !Array.isArray(report.nodes) || !report.verdict) throw new Error("it has no flow, nodes and verdict");
    data = report;
    error = "";
  } catch (problem) {
    error = `This is not the output of contiv-netctl trace -o json: ${problem.message}.`;
  }
  draw();
}

async function run(form) {
  const fields = new FormData(form);
  running = true;
  error = "";
  draw();
  try {
    data = await post("api/trace", { from: fields.get("from").trim(), to: fields.get("to").trim(), proto: fields.get("proto"), port: Number(fields.get("port")) || 0, ipv6: fields.get("ipv6") === "on" });
  } catch (problem) {
    data = null;
    error = problem.message;
  }
  running = false;
  draw();
}

export function on(kind, event) {
  if (kind === "input" && Object.hasOwn(typed, event.target.name)) typed[event.target.name] = event.target.value;
  if (kind === "submit" && event.target.id === "trace-form") {
    event.preventDefault();
    if (!running) run(event.target);
  }
  if (kind === "change" && event.target.id === "saved" && event.target.files[0]) {
    event.target.files[0].text().then(take);
    event.target.value = "";
  }
  if (kind === "dragover") event.preventDefault();
  if (kind === "drop") {
    event.preventDefault();
    event.dataTransfer.files[0]?.text().then(take);
  }
  if (kind === "paste" && !(event.target instanceof HTMLInputElement)) take(event.clipboardData.getData("text"));
}

export function render({ session }) {
  return [
    h("h1", { class: "sr" }, "Trace"),
    session.trace ? form() : null,
    error && h("div", { class: "note bad", role: "alert" }, h("p", {}, error)),
    data ? drawing() : help(session),
  ];
}

function form() {
  return h("form", { id: "trace-form", class: "card trace-form", autocomplete: "off" },
    h("label", {}, "From pod", h("input", { name: "from", value: typed.from, required: true, list: "pods", placeholder: "default/web-1", spellcheck: "false" })),
    h("label", {}, "To pod, node, service or address", h("input", { name: "to", value: typed.to, required: true, list: "places", placeholder: "svc/default/db", spellcheck: "false" })),
    h("label", { class: "small" }, "Protocol", h("select", { name: "proto" }, h("option", { value: "" }, "as the destination"), ["icmp", "tcp", "udp"].map((p) => h("option", { value: p }, p)))),
    h("label", { class: "small" }, "Port", h("input", { name: "port", value: typed.port, type: "number", min: 1, max: 65535, inputmode: "numeric" })),
    h("label", { class: "check" }, h("input", { name: "ipv6", type: "checkbox" }), " IPv6"),
    h("button", { class: "primary", disabled: running }, running ? "Tracing…" : "Trace"),
    h("datalist", { id: "pods" }, names.pods.slice(0, 1000).map((n) => h("option", { value: n }))),
    h("datalist", { id: "places" }, [...names.pods, ...names.services].slice(0, 2000).map((n) => h("option", { value: n }))));
}

function picker(text) {
  return h("label", { class: "button" }, text, h("input", { id: "saved", type: "file", accept: ".json,application/json", class: "sr" }));
}

function help(session) {
  return h("div", { class: "empty big" },
    h("p", { class: "empty-title" }, session.trace ? "Choose two ends, or open a saved trace" : "Open a saved trace"),
    h("ol", { class: "steps" },
      h("li", {}, "Save a trace: ", command("contiv-netctl trace default/a svc/default/db -o json > trace.json")),
      h("li", {}, "Open it: ", picker("Choose a file"), " or drop it here, or paste it. It stays in this browser.")),
    !session.trace && h("p", {}, "A trace sends one packet from a pod, which the read-only token does not allow. To trace from this page, start it with ", command("contiv-netctl ui --allow-trace")));
}

// ---- the drawing ----

const end = (addr, port) => !addr ? "" : port ? (addr.includes(":") ? `[${addr}]:${port}` : `${addr}:${port}`) : addr;

function drawing() {
  const { flow, verdict, nodes } = data;
  const good = verdict.answered;
  return [
    h("div", { class: `verdict ${good ? "good" : "bad"}`, role: "status" }, mark(good ? "good" : "bad"),
      h("div", {}, h("p", { class: "verdict-text" }, verdict.text),
        h("p", {}, `${data.from} → ${data.to} · ${flow.proto}${flow.port ? ` ${flow.port}` : ""} · `, h("code", {}, flow.source), " → ", h("code", {}, end(flow.dest, flow.port)))),
      h("div", { class: "verdict-tools" }, picker("Open another"), h("button", { type: "button", "data-act": "forget" }, "Clear"))),
    h("section", { class: "card", "aria-label": "The way of the packet" }, rail()),
    h("div", { class: "sides" }, nodes.map((side, i) => [
      i > 0 && h("div", { class: `wire${between(i) ? " bad" : ""}`, "aria-hidden": "true" }, h("span", {}, between(i) ? "✗" : "⇄")),
      sideCard(side, i)])),
    data.service && serviceNote(data.service),
  ];
}

const seen = (path) => path && path.outcome !== "not seen";

// between: the packet, or its reply, left one node and did not arrive at the other node.
function between(i) {
  const [a, b] = [data.nodes[i - 1], data.nodes[i]];
  return !data.verdict.answered && ((a.there.outcome === "sent" && !seen(b.there)) || (seen(b.back) && b.back.outcome === "sent" && !seen(a.back)));
}

// rail shows the whole path in one line: the packet above, the reply below.
function rail() {
  const stops = [{ text: data.from, kind: "end", note: data.flow.source, there: "good", back: data.verdict.answered ? "good" : "none" }];
  for (const side of data.nodes) {
    stops.push({ text: side.node, kind: "stop", note: change(side.there), there: color(side.there), back: color(side.back) });
  }
  const chosen = data.service?.pod || (data.service ? data.service.node : "");
  stops.push({ text: chosen ? `${data.to} → ${chosen}` : data.to, kind: "end", note: end(data.flow.dest, data.flow.port), there: data.verdict.delivered ? "good" : "none", back: data.nodes.some((s) => seen(s.back)) ? "good" : "none" });
  return [h("ol", { class: "rail" }, stops.map((s) => h("li", { class: `${s.kind} there-${s.there} back-${s.back}` },
    h("span", { class: "dot", "aria-hidden": "true" }, s.there === "bad" || s.back === "bad" ? "✗" : ""),
    h("span", { class: "rail-name" }, s.text), s.note && h("span", { class: "rail-note" }, s.note)))),
  h("p", { class: "legend" }, h("span", { class: "key there" }), "the packet", h("span", { class: "key back" }), "its answer", data.probe?.rttMs?.length > 0 && ` · ${millis(data.probe.rttMs[0])} there and back`)];
}

const color = (path) => !seen(path) ? "none" : path.outcome === "dropped" || path.outcome === "unknown" ? "bad" : "good";

const differs = (path) => path.came && path.left && JSON.stringify(path.came) !== JSON.stringify(path.left);
const change = (path) => differs(path) ? "translates" : "";

function sideCard(side) {
  return h("section", { class: `card side-card${data.verdict.lost === side.node ? " lost" : ""}` },
    h("h2", {}, side.node),
    lane("The packet", side.there),
    lane("The answer", side.back),
    (side.facts || []).length > 0 && [h("h3", {}, "Routing"), h("ul", { class: "facts" }, side.facts.map((f) => h("li", { class: f.problem ? "bad" : null }, f.problem && mark("bad"), h("b", {}, `${f.what} of the ${f.where}`), " ", h("code", {}, f.text))))],
    (side.drops || []).length > 0 && [h("h3", {}, "Counters that rose meanwhile"), h("ul", { class: "facts" }, side.drops.map((d) => h("li", {}, h("b", {}, `+${d.count}`), ` ${d.where}: ${d.reason}`)))],
    (side.notes || []).map((n) => h("p", { class: "hint" }, n)));
}

function lane(title, path) {
  if (!path) return null;
  if (!seen(path)) return h("div", { class: "lane none" }, h("h3", {}, title), h("p", { class: "faint" }, "not seen on this node"));
  const stations = [];
  let minor = [];
  const flush = () => {
    if (minor.length) {
      stations.push(h("li", { class: "minor" }, h("details", {}, h("summary", {}, `${minor.length} rule${minor.length === 1 ? "" : "s"} of ours that lead${minor.length === 1 ? "s" : ""} on`), h("ul", {}, minor.map((one) => h("li", {}, h("code", {}, one.stage), " ", one.what))))));
    }
    minor = [];
  };
  for (const hop of path.hops || []) {
    if (hop.minor) {
      minor.push(hop);
      continue;
    }
    flush();
    stations.push(h("li", {}, h("code", {}, hop.stage), h("span", {}, hop.what)));
  }
  flush();
  const ends = { sent: path.out ? `sent to ${path.out}` : "sent", local: "taken by the node itself", dropped: path.reason || "dropped", unknown: "seen, and then no more" };
  const bad = path.outcome === "dropped" || path.outcome === "unknown";
  return h("div", { class: `lane ${bad ? "bad" : "good"}` }, h("h3", {}, title),
    h("ol", { class: "stations" }, stations,
      differs(path) && h("li", { class: "translated" }, h("b", {}, "translated"), h("span", {}, h("code", {}, `${path.came.source} → ${path.came.dest}`), " became ", h("code", {}, `${path.left.source} → ${path.left.dest}`))),
      h("li", { class: `last ${bad ? "bad" : "good"}` }, h("b", {}, bad ? "✗ " : "", path.outcome === "dropped" ? "dropped" : ""), " ", h("span", {}, ends[path.outcome] || path.outcome))));
}

function serviceNote(s) {
  return h("section", { class: "card" }, h("h2", {}, `Service ${s.service}`),
    h("p", {}, `Reached as ${s.as}; ${s.backends?.length || 0} backends could be chosen.`, s.chosen && [" Chosen: ", h("code", {}, s.chosen), s.pod ? ` (pod ${s.pod} on ${s.node})` : ""]),
    s.missing && h("p", { class: "hint" }, `Nothing was recorded on the backend's node: ${s.missing}`));
}
