// Dropped packets: where, and the reason.

import { draw } from "./app.js";
import { clock, command, count, empty, h, mark, matches } from "./dom.js";

let data = null;
let filter = "";

export const ready = () => data !== null;

export async function load({ get }) {
  data = await get("api/drops");
}

export function on(kind, event) {
  if (kind === "input" && event.target.id === "filter") {
    filter = event.target.value;
    draw();
  }
}

export function render() {
  const fits = (list) => list.filter((d) => matches(filter, d.node, d.where, d.reason, d.means || ""));
  const counters = fits(data.counters), interfaces = fits(data.interfaces);
  const rising = data.counters.filter((d) => d.recent > 0);
  return [
    h("div", { class: "tools" },
      h("h1", { class: "sr" }, "Drops"),
      h("p", { class: "lead", role: "status" }, rising.length ? [mark("warning"), ` ${count(rising.length, "counter")} rose in the last minute`] : [mark("good"), " No counter rose in the last minute"]),
      h("input", { id: "filter", type: "search", placeholder: "Node, reason, pod…", "aria-label": "Filter", autocomplete: "off", spellcheck: "false" })),
    data.missing.length > 0 && h("div", { class: "note warning", role: "status" }, data.missing.map((m) => h("p", {}, `The counters of ${m.node} are not shown: ${m.text}.`))),
    denied(data.denied.filter((d) => matches(filter, d.node, d.pod, d.source, d.sourcePod || "", d.dest, d.destPod || "", d.policy || "", d.because))),
    h("section", { class: "card" }, h("h2", {}, "By reason"),
      data.counters.length === 0 ? empty("Nothing was dropped", "The dataplanes of the nodes that answer have counted no drop since they have started.") :
        counters.length === 0 ? empty("No counter matches", `None of ${count(data.counters.length, "counter")} has “${filter}” in its node, place or reason. Clear the filter.`) : table(counters, true)),
    data.interfaces.length > 0 && interfaces.length > 0 && h("section", { class: "card" }, h("h2", {}, "By pod and interface"), table(interfaces, false)),
    h("p", { class: "hint" }, "Where one packet is dropped: ", command("contiv-netctl trace FROM TO"), " What policy says to a connection: ", command("contiv-netctl policy why FROM TO")),
  ];
}

// denied are the connections that network policy has denied.
function denied(list) {
  if (list.length === 0) return null;
  return h("section", { class: "card denied", "data-key": "denied" }, h("h2", {}, "Denied by network policy"),
    h("div", { class: "scroll" }, h("table", { class: "stack" },
      h("thead", {}, h("tr", {}, ["Last", "From", "To", "Protocol", "Why", "Packets"].map((text, i) => h("th", { scope: "col", class: i === 5 ? "num" : null }, text)))),
      h("tbody", {}, list.map((d) => h("tr", { "data-key": `${d.node} ${d.direction} ${d.source} ${d.dest} ${d.protocol} ${d.port || ""}` },
        h("th", { scope: "row", class: "nowrap" }, clock(d.time)),
        h("td", { "data-label": "From" }, end(d.sourcePod, d.source)),
        h("td", { "data-label": "To" }, end(d.destPod, d.dest)),
        h("td", { "data-label": "Protocol", class: "nowrap" }, `${d.protocol}${d.port ? ` ${d.port}` : ""}`),
        h("td", { "data-label": "Why" }, d.policy && h("b", {}, `${d.policy}: `), d.because, h("span", { class: "means" }, `${d.direction} of ${d.pod || "a pod that has left"} on ${d.node}`)),
        h("td", { "data-label": "Packets", class: "num" }, d.count.toLocaleString("en"))))))));
}

const end = (pod, address) => pod ? [h("span", { class: "block" }, pod), h("code", { class: "faint" }, address)] : h("code", {}, address);

function table(list, why) {
  const most = Math.max(1, ...list.map((d) => d.recent));
  return h("div", { class: "scroll" }, h("table", { class: "stack" },
    h("thead", {}, h("tr", {}, [why ? "Reason" : "Where", "Node", why ? "Where" : "What", "Last minute", "Total"].map((text, i) => h("th", { scope: "col", class: i > 2 ? "num" : null }, text)))),
    h("tbody", {}, list.slice(0, 300).map((d) => h("tr", { "data-key": `${d.node} ${d.where} ${d.reason}`, class: d.recent > 0 ? "rising" : null },
      h("th", { scope: "row" }, why ? d.reason : d.where, why && d.means && h("span", { class: "means" }, d.means)),
      h("td", { "data-label": "Node" }, d.node),
      h("td", { "data-label": why ? "Where" : "What" }, why ? h("code", {}, d.where) : d.reason),
      h("td", { "data-label": "Last minute", class: "num nowrap" }, d.recent > 0 ? [`+${d.recent.toLocaleString("en")}`, h("meter", { min: 0, max: 1, value: d.recent / most, "aria-hidden": "true" })] : h("span", { class: "faint" }, "–")),
      h("td", { "data-label": "Total", class: "num" }, d.count.toLocaleString("en")))))));
}
