// Pods and services with their backends.

import { draw } from "./app.js";
import { count, empty, command, h, mark, matches, scaled } from "./dom.js";

let data = null;
let filter = "";
let most = 100; // rows that are drawn; a button shows more
const open = new Set(); // services whose backends are all shown

export const ready = () => data !== null;

export async function load({ get }) {
  data = await get("api/workloads");
}

export const actions = {
  more() {
    most += 400;
    draw();
  },
  backends(name) {
    if (open.has(name)) open.delete(name);
    else open.add(name);
    draw();
  },
};

export function on(kind, event) {
  if (kind === "input" && event.target.id === "filter") {
    filter = event.target.value;
    most = 100;
    draw();
  }
}

export function render({ path }) {
  const services = path[0] === "services";
  const node = path[0] === "pods" ? path[1] || "" : "";
  return [
    h("div", { class: "tools" },
      h("h1", { class: "sr" }, "Pods and services"),
      h("div", { class: "tabs" },
        h("a", { href: "#/workloads/pods", "aria-current": services ? null : "page" }, "Pods ", h("span", { class: "n" }, data.pods.length)),
        h("a", { href: "#/workloads/services", "aria-current": services ? "page" : null }, "Services ", h("span", { class: "n" }, data.services.length))),
      h("input", { id: "filter", type: "search", placeholder: services ? "Name, address, backend…" : "Name, node, address…", "aria-label": "Filter", autocomplete: "off", spellcheck: "false" }),
      node && h("a", { class: "chip", href: "#/workloads/pods", "aria-label": `Show pods of all nodes, not only of ${node}` }, `on ${node} ✕`)),
    data.missing.length > 0 && h("div", { class: "note warning", role: "status" }, data.missing.map((m) => h("p", {}, `The pods of ${m.node} are not shown: ${m.text}.`))),
    services ? serviceList() : podList(node),
  ];
}

function rest(total) {
  return total > most && h("p", { class: "rest" }, h("button", { type: "button", "data-act": "more" }, `Show more (${(total - most).toLocaleString("en")} are not shown)`));
}

function podList(node) {
  const list = data.pods.filter((p) => (!node || p.node === node) && matches(filter, p.namespace, p.name, p.node, p.addresses, p.services));
  if (data.pods.length === 0) return empty("No pods are connected", "Pods appear here when the CNI plugin has connected them. See what the agent has handled: ", command("contiv-netctl events"));
  if (list.length === 0) return empty("No pod matches", `None of ${count(data.pods.length, "pod")} has “${filter || node}” in its name, node or addresses. Clear the filter.`);
  const busiest = Math.max(1, ...list.map((p) => p.traffic ? p.traffic.inBits + p.traffic.outBits : 0));
  return h("section", { class: "card" },
    h("div", { class: "scroll" }, h("table", { class: "stack" },
      h("thead", {}, h("tr", {}, ["Pod", "Node", "Addresses", "In", "Out", "Backend of"].map((name, i) => h("th", { scope: "col", class: i === 3 || i === 4 ? "num" : null }, name)))),
      h("tbody", {}, list.slice(0, most).map((p) => h("tr", { "data-key": `${p.namespace}/${p.name}` },
        h("th", { scope: "row" }, name(p.namespace, p.name)),
        h("td", { "data-label": "Node" }, p.node),
        h("td", { "data-label": "Addresses" }, p.addresses.map((a) => h("code", { class: "block" }, a))),
        h("td", { "data-label": "In", class: "num nowrap" }, rate(p.traffic, "in", busiest)),
        h("td", { "data-label": "Out", class: "num nowrap" }, rate(p.traffic, "out", busiest)),
        h("td", { "data-label": "Backend of" }, p.services.length ? p.services.map((s) => h("a", { class: "chip", href: "#/workloads/services" }, s)) : h("span", { class: "faint" }, "–"))))))),
    rest(list.length));
}

export function name(namespace, text) {
  return [namespace && h("span", { class: "faint" }, `${namespace}/`), text];
}

function rate(traffic, way, busiest) {
  if (!traffic) return h("span", { class: "faint", title: "The agent has no counters of this pod yet" }, "–");
  const bits = traffic[`${way}Bits`];
  return [h("span", { title: `${scaled(traffic[`${way}Packets`], "packets/s")}` }, scaled(bits, "bit/s")), h("meter", { min: 0, max: 1, value: bits / busiest, "aria-hidden": "true" })];
}

const shown = 6;

function serviceList() {
  if (data.servicesMissing) return empty("No services", data.servicesMissing);
  if (data.services.length === 0) return empty("No services", `Node ${data.from} serves none. Agents serve services when they watch Kubernetes (--kubeconfig); headless services need none.`);
  const list = data.services.filter((s) => matches(filter, s.namespace, s.name, s.addresses, s.external, s.ports.map((p) => [p.name, p.port, p.backends.map((b) => [b.pod, b.address, b.node])].flat(3))));
  if (list.length === 0) return empty("No service matches", `None of ${count(data.services.length, "service")} has “${filter}” in its name, addresses or backends. Clear the filter.`);
  return h("section", { class: "services" },
    list.slice(0, most).map((s) => h("article", { class: `card service${s.problem ? " bad" : ""}`, "data-key": `${s.namespace}/${s.name}` },
      h("div", { class: "service-head" },
        h("h2", {}, mark(s.problem ? "bad" : "good"), " ", name(s.namespace, s.name)),
        h("p", {}, s.addresses.map((a) => h("code", {}, a)), s.external.map((a) => h("code", { title: "external" }, a))),
        s.policy && h("p", { class: "hint" }, s.policy),
        s.problem && h("p", { class: "why" }, s.problem)),
      h("div", { class: "ports" }, s.ports.map((p) => portRow(s, p))))),
    rest(list.length),
    h("p", { class: "hint" }, `As the dataplane of ${data.from} serves them.`));
}

function portRow(s, p) {
  const id = `${s.namespace}/${s.name}:${p.port}/${p.protocol}`;
  const all = open.has(id) || p.backends.length <= shown + 1;
  const list = all ? p.backends : p.backends.slice(0, shown);
  return h("div", { class: "port", "data-key": id },
    h("div", { class: "port-name" }, h("b", {}, `${p.port}/${p.protocol}`), p.name && h("span", { class: "faint" }, ` ${p.name}`), p.nodePort > 0 && h("span", { class: "faint block" }, `node port ${p.nodePort}`)),
    h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    p.backends.length === 0 ? h("p", { class: "why" }, "no ready backend: connections are rejected") :
      h("ul", { class: "backends" }, list.map((b) => h("li", {}, h("span", {}, b.pod || (b.node ? `node ${b.node}` : "outside")), h("code", {}, b.address), b.pod && h("span", { class: "faint" }, b.node))),
        p.backends.length > shown + 1 && h("li", { class: "plainly" }, h("button", { type: "button", class: "link", "data-act": "backends", "data-arg": id, "aria-expanded": all }, all ? "Show fewer" : `${p.backends.length - shown} more`))));
}
