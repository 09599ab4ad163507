// Nodes and the tunnels between them, with their health, and the reason if they are not healthy.

import { draw } from "./app.js";
import { command, count, empty, h, healthWord, mark, marks, millis, scaled } from "./dom.js";

let data = null;
let chosen = ""; // "node/NAME" or "tunnel/A/B"

export const ready = () => data !== null;

export async function load({ overview }) {
  data = overview;
}

export const actions = {
  choose(what) {
    chosen = chosen === what ? "" : what;
    draw();
  },
  close() {
    chosen = "";
    draw();
  },
};

export function render() {
  return [
    h("h1", { class: "sr" }, "Topology"),
    h("div", { class: "split" },
      h("div", { class: "side" }, h("section", { class: "card graph", "aria-label": "Nodes and tunnels" }, graph()), table()),
      h("div", { class: "side" }, detail(), problems(), health())),
  ];
}

function health() {
  return h("section", { class: "card", "data-key": "health" }, h("h2", {}, "Checks"),
    h("ul", { class: "checks" }, data.lines.map((line) =>
      h("li", {}, mark(line.ok ? "good" : "bad"), h("b", {}, line.about), h("span", {}, line.text)))));
}

function problems() {
  if (data.problems.length === 0) return null;
  return h("section", { class: "card", "data-key": "problems" }, h("h2", {}, "Problems"),
    h("ul", { class: "problems" }, data.problems.map((p) => h("li", { class: p.unready ? "bad" : "warning" },
      mark(p.unready ? "bad" : "warning"),
      h("div", {}, p.node ? h("button", { type: "button", class: "link", "data-act": "choose", "data-arg": `node/${p.node}` }, p.node) : h("b", {}, "Cluster"),
        h("p", {}, p.text), p.fix && command(p.fix))))));
}

// ---- the drawing ----

const cardHeight = 66;
const nameFont = "650 14px", subFont = "11.5px"; // as in style.css

// places arranges n nodes on an ellipse, or in a grid if they are many.
function places(n, width, height, card) {
  const left = card / 2 + 6, top = cardHeight / 2 + 6;
  const w = width - 2 * left, hgt = height - 2 * top;
  if (n === 1) return [[width / 2, height / 2]];
  if (n === 3 && width < 480) return [[width / 2, top], [width - left + 3, top + hgt * 0.8], [left - 3, top + hgt * 0.8]]; // on an ellipse the lower two would overlap
  if (n === 2) return width < 480 ? [[width / 2, top + hgt * 0.15], [width / 2, top + hgt * 0.85]] : [[left + w * 0.12, height / 2], [left + w * 0.88, height / 2]];
  return Array.from({ length: n }, (_, i) => {
    const a = -Math.PI / 2 + (2 * Math.PI * i) / n;
    return [width / 2 + (w / 2) * Math.cos(a), height / 2 + (hgt / 2) * Math.sin(a)];
  });
}

function graph() {
  const nodes = data.nodes;
  if (nodes.length === 0) return empty("No nodes", "No agent has claimed an ID. Look at the agent's log: ", command("contiv-netctl logs"));
  const main = document.getElementById("main");
  const wide = matchMedia("(min-width: 1000px)").matches;
  const width = Math.max(300, Math.floor(main.clientWidth - (wide ? 380 : 0) - 34));
  const many = nodes.length > 12 || (width < 480 && nodes.length > 3);
  const least = Math.min(nodes.length > 8 ? 160 : 192, (width - 20) / 2);
  const columns = Math.max(1, Math.floor(width / (least + 14)));
  const card = many ? Math.min(210, width / columns - 14) : least;
  const rows = Math.ceil(nodes.length / columns);
  const height = many ? rows * (cardHeight + 34) + 10 : width < 480 ? 380 : Math.min(520, 330 + nodes.length * 24);
  const spots = many
    ? nodes.map((_, i) => [(i % columns + 0.5) * (width / columns), Math.floor(i / columns) * (cardHeight + 34) + cardHeight / 2 + 14])
    : places(nodes.length, width, height, card);
  const at = new Map(nodes.map((node, i) => [node.name, spots[i]]));
  const labels = data.tunnels.length <= 10 && !many;
  const names = labelsOf(nodes);
  const order = { good: 0, unknown: 1, warning: 2, bad: 3 };
  const tunnels = [...data.tunnels].sort((a, b) => order[a.health] - order[b.health]);
  return [
    h("svg", { class: "topology", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${count(nodes.length, "node")}, ${count(data.tunnels.length, "tunnel")}` },
      tunnels.filter((t) => t.health !== "bad").map((t) => edge(t, at, labels, card)),
      nodes.map((node) => box(node, names.get(node.name), at.get(node.name), card)),
      tunnels.filter((t) => t.health === "bad").map((t) => edge(t, at, labels, card))), // above the boxes, so that none hides it
    data.hidden > 0 && h("p", { class: "hint" }, `${count(data.hidden, "tunnel")} without a problem are not drawn.`),
    nodes.length === 1 && h("p", { class: "hint" }, "One node. A second one joins when its agent starts with the same etcd."),
  ];
}

// labelsOf returns the labels by node: names without their domain, if these names are different.
function labelsOf(nodes) {
  const host = (node) => node.name.split(".")[0];
  const distinct = new Set(nodes.map(host)).size === nodes.length;
  return new Map(nodes.map((node) => [node.name, distinct ? host(node) : node.name]));
}

// trim shortens a line at both ends, so that it ends at the boxes.
function trim([x1, y1], [x2, y2], card) {
  const dx = x2 - x1, dy = y2 - y1;
  const inside = Math.min(dx ? (card / 2) / Math.abs(dx) : 1, dy ? (cardHeight / 2) / Math.abs(dy) : 1, 0.5);
  return [[x1 + dx * inside, y1 + dy * inside], [x2 - dx * inside, y2 - dy * inside]];
}

function edge(t, at, labels, card) {
  const [[x1, y1], [x2, y2]] = trim(at.get(t.a), at.get(t.b), card);
  // Long tunnels cross in the middle of the drawing: their labels are nearer to one end.
  const part = crossing(t, at) ? 0.36 : 0.5;
  const mx = x1 + (x2 - x1) * part, my = y1 + (y2 - y1) * part;
  const id = `tunnel/${t.a}/${t.b}`;
  const text = t.health === "good" && t.rttMs ? millis(t.rttMs) : "";
  const room = Math.hypot(x2 - x1, y2 - y1) > 76; // for the label
  const line = `M${x1} ${y1}L${x2} ${y2}`;
  return h("g", { class: `edge ${t.health}${chosen === id ? " chosen" : ""}`, "data-key": id, "data-act": "choose", "data-arg": id, tabindex: 0, role: "button", "aria-pressed": chosen === id, "aria-label": `Tunnel ${t.a} to ${t.b}: ${healthWord(t.health)}${text ? `, ${text}` : ""}` },
    h("title", {}, `${t.a} – ${t.b}: ${healthWord(t.health)}${text ? `, ${text}` : ""}`),
    h("path", { class: "hit", d: line }), h("path", { class: "line", d: line }),
    t.health === "bad" && [h("circle", { cx: mx, cy: my, r: 12 }), h("text", { x: mx, y: my + 5, class: "cross" }, "✗")],
    t.health !== "bad" && labels && room && text && [h("rect", { x: mx - 30, y: my - 10, width: 60, height: 20, rx: 10 }), h("text", { x: mx, y: my + 4 }, text)]);
}

// crossing reports whether a tunnel crosses the drawing: its ends are not neighbours on the ellipse.
function crossing(t, at) {
  const names = [...at.keys()];
  const apart = Math.abs(names.indexOf(t.a) - names.indexOf(t.b));
  return names.length > 3 && apart > 1 && apart < names.length - 1;
}

const ruler = document.createElement("canvas").getContext("2d");

// fits reports whether a text of the drawing, in a font such as "11px" or "650 14px", is not wider than a limit.
function fits(text, width, font) {
  ruler.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width <= width;
}

// short omits the middle of a text that does not fit, because names of nodes often differ at their ends.
function short(text, width, font) {
  let n = text.length;
  let out = text;
  while (n > 2 && !fits(out, width, font)) {
    n--;
    out = `${text.slice(0, Math.ceil(n / 2))}…${text.slice(text.length - Math.floor(n / 2))}`;
  }
  return out;
}

function box(node, label, [x, y], width) {
  const id = `node/${node.name}`;
  const left = x - width / 2, top = y - cardHeight / 2;
  const rates = (unit) => `↓ ${scaled(node.traffic.inBits, unit)} ↑ ${scaled(node.traffic.outBits, unit)}`;
  const traffic = node.traffic && (fits(rates("bit/s"), width - 20, subFont) ? rates("bit/s") : rates("b/s"));
  const what = node.dataplane ? `${node.dataplane} · ${count(node.pods, "pod")}` : "no reply";
  return h("g", { class: `node ${node.health}${chosen === id ? " chosen" : ""}`, "data-key": id, "data-act": "choose", "data-arg": id, tabindex: 0, role: "button", "aria-pressed": chosen === id, "aria-label": `Node ${node.name}: ${healthWord(node.health)}, ${what}` },
    h("title", {}, node.name),
    h("rect", { class: "body", x: left, y: top, width, height: cardHeight, rx: 10 }),
    h("circle", { class: "badge", cx: left + 20, cy: top + 21, r: 10 }),
    h("text", { class: "sign", x: left + 20, y: top + 25.5 }, marks[node.health]),
    h("text", { class: "name", x: left + 38, y: top + 26 }, short(label, width - 46, nameFont)),
    h("text", { class: "sub", x: left + 12, y: top + 45 }, short(what, width - 20, subFont)),
    traffic && h("text", { class: "sub", x: left + 12, y: top + 59 }, short(traffic, width - 20, subFont)));
}

// ---- the selected node or tunnel ----

function field(name, ...value) {
  return [h("dt", {}, name), h("dd", {}, ...value)];
}

function closing(title, ...rest) {
  return h("section", { class: "card chosen-card", "data-key": "chosen", "aria-live": "polite" },
    h("div", { class: "card-head" }, h("h2", {}, title), h("button", { type: "button", class: "ghost", "data-act": "close", "aria-label": "Close" }, "✕")), ...rest);
}

function detail() {
  const [kind, a, b] = chosen.split("/");
  if (kind === "node") {
    const node = data.nodes.find((n) => n.name === a);
    if (node) return nodeDetail(node);
  }
  if (kind === "tunnel") {
    const t = data.tunnels.find((one) => one.a === a && one.b === b);
    if (t) return tunnelDetail(t);
  }
  return null;
}

function nodeDetail(node) {
  return closing([mark(node.health), " ", node.name],
    node.problems.length > 0 && h("ul", { class: "problems" }, node.problems.map((p) => h("li", { class: p.unready ? "bad" : "warning" }, mark(p.unready ? "bad" : "warning"), h("div", {}, h("p", {}, p.text), p.fix && command(p.fix))))),
    h("dl", {},
      field("ID", node.id),
      node.dataplane && field("Dataplane", node.dataplane, node.vpp ? `, VPP ${node.vpp}` : ""),
      node.transport && field("Transport", node.transport),
      field("Addresses", node.addresses.map((addr) => h("code", { class: "block" }, addr))),
      node.mgmt.length > 0 && field("Management", node.mgmt.map((addr) => h("code", { class: "block" }, addr))),
      node.version && field("Version", node.version),
      node.started && field("Started", new Date(node.started).toLocaleString("en-GB")),
      node.values && field("Values", Object.entries(node.values).map(([name, n]) => `${n} ${name.toLowerCase()}`).join(", "))),
    h("p", { class: "more" }, h("a", { href: `#/workloads/pods/${encodeURIComponent(node.name)}` }, "Pods"), h("a", { href: `#/events/${encodeURIComponent(node.name)}` }, "Events")));
}

function tunnelDetail(t) {
  return closing([mark(t.health), ` ${t.a} – ${t.b}`],
    h("p", {}, t.health === "good" ? `Packets get through${t.rttMs ? `: ${millis(t.rttMs)} there and back` : ""}.` : t.health === "bad" ? "Packets of pods are lost between these nodes." : "The state is not known."),
    t.causes.length > 0 && h("ul", { class: "plain" }, t.causes.map((cause) => h("li", {}, cause))),
    h("dl", {}, t.transport && field("Transport", t.transport)),
    t.health === "bad" && h("p", { class: "hint" }, "Compare more: ", command("contiv-netctl check")));
}

// ---- the table ----

function bar(usage) {
  const total = usage.Used + usage.Free;
  const percent = total ? Math.round((100 * usage.Used) / total) : 0;
  return h("div", { class: `usage${percent >= 90 ? " full" : ""}` },
    h("span", { class: "usage-text" }, h("code", {}, usage.Subnet), ` ${usage.Used.toLocaleString("en")} of ${total > 1e6 ? scaled(total, "") : total.toLocaleString("en")}`),
    h("progress", { max: 100, value: Math.max(percent, usage.Used > 0 ? 1 : 0), "aria-label": `${percent} % of ${usage.Subnet} used` }));
}

function table() {
  if (data.nodes.length === 0) return null;
  return h("section", { class: "card" }, h("h2", {}, "Nodes"),
    h("div", { class: "scroll" }, h("table", { class: "stack" },
      h("thead", {}, h("tr", {}, ["Node", "Dataplane", "Address", "Pods", "Traffic of pods", "Pod addresses"].map((name, i) => h("th", { scope: "col", class: i === 3 || i === 4 ? "num" : null }, name)))),
      h("tbody", {}, data.nodes.map((node) => h("tr", { "data-key": node.name },
        h("th", { scope: "row" }, mark(node.health), " ", h("button", { type: "button", class: "link", "data-act": "choose", "data-arg": `node/${node.name}` }, node.name)),
        h("td", { "data-label": "Dataplane" }, node.dataplane || "–"),
        h("td", { "data-label": "Address" }, h("code", {}, node.addresses[0] || "–")),
        h("td", { "data-label": "Pods", class: "num" }, node.dataplane ? node.pods : "–"),
        h("td", { "data-label": "Traffic of pods", class: "num nowrap" }, node.traffic ? `↓ ${scaled(node.traffic.inBits, "bit/s")} ↑ ${scaled(node.traffic.outBits, "bit/s")}` : "–"),
        h("td", { "data-label": "Pod addresses" }, (node.subnets || []).length ? node.subnets.map(bar) : "–")))))));
}
