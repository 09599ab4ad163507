// The events that the agent of a node has handled, and the changes of each transaction.

import { draw, get } from "./app.js";
import { clock, command, count, day, empty, h, millis } from "./dom.js";

let list = null; // EventList
let detail = null; // EventDetail of the selected event
let failed = "";
let onlyChanges = false;
const values = new Map(); // by key: the value, or an error

export const ready = () => list !== null;

export async function load({ get, path }) {
  const [node = "", number = ""] = path;
  const before = list?.node;
  list = await get(`api/events?node=${encodeURIComponent(node)}`);
  if (list.node !== before) values.clear();
  if (!number) {
    detail = null;
    failed = "";
    return;
  }
  if (detail && detail.node === list.node && String(detail.number) === number) return;
  try {
    detail = await get(`api/event?node=${encodeURIComponent(list.node)}&number=${encodeURIComponent(number)}`);
    failed = "";
    values.clear();
  } catch (error) {
    detail = null;
    failed = error.message;
  }
}

const open = (node, number) => { location.hash = `#/events/${encodeURIComponent(node)}${number ? `/${number}` : ""}`; };

export const actions = {
  event: (number) => open(list.node, number),
  close: () => open(list.node, ""),
  async value(key) {
    if (values.has(key)) {
      values.delete(key);
      draw();
      return;
    }
    values.set(key, { loading: true });
    draw();
    try {
      values.set(key, await get(`api/value?node=${encodeURIComponent(list.node)}&value=${encodeURIComponent(key)}`));
    } catch (error) {
      values.set(key, { error: error.message });
    }
    draw();
  },
};

export function on(kind, event) {
  if (kind === "change" && event.target.id === "node") open(event.target.value, "");
  if (kind === "change" && event.target.id === "only") {
    onlyChanges = event.target.checked;
    draw();
  }
}

export function render({ path }) {
  const number = path[1] || "";
  const events = list.events.filter((e) => !onlyChanges || e.created + e.changed + e.deleted + e.failed > 0 || e.error);
  return [
    h("div", { class: "tools" },
      h("h1", { class: "sr" }, "Events"),
      h("label", {}, "Node ", h("select", { id: "node", "data-key": `select-${list.node}` }, list.nodes.map((n) => h("option", { value: n.name, selected: n.name === list.node }, n.name)))),
      h("label", { class: "check" }, h("input", { id: "only", type: "checkbox" }), " only those that changed something")),
    h("div", { class: `events${number ? " one" : ""}` },
      h("section", { class: "card list", "aria-label": "Events" },
        events.length === 0 ? empty("No events", list.events.length ? "None of the events changed anything. Clear the box above." : "The agent keeps no history: recordEventHistory is off in controller.conf.") :
          h("ol", {}, events.map((e) => row(e, String(e.number) === number)))),
      h("section", { class: "card detail", "aria-live": "polite" }, number ? chosen(number) : empty("Choose an event", "Its plugins and its transaction are shown here as a diff."))),
  ];
}

function diffstat(e) {
  return h("span", { class: "stat" },
    e.created > 0 && h("span", { class: "add" }, `+${e.created}`), e.changed > 0 && h("span", { class: "mod" }, `~${e.changed}`),
    e.deleted > 0 && h("span", { class: "del" }, `−${e.deleted}`), e.failed > 0 && h("span", { class: "fail" }, `✗${e.failed}`));
}

// textWithoutName is the description of an event without its name, because the name is shown before it.
const textWithoutName = (e) => e.text.startsWith(e.name) ? e.text.slice(e.name.length).replace(/^[: ]+/, "") : e.text;

function row(e, current) {
  return h("li", { "data-key": e.number },
    h("button", { type: "button", class: `event${e.error ? " bad" : ""}`, "data-act": "event", "data-arg": e.number, "aria-current": current ? "true" : null },
      h("span", { class: "when" }, clock(e.at)), h("span", { class: "what" }, h("b", {}, e.name), h("span", {}, textWithoutName(e))), diffstat(e),
      e.error && h("span", { class: "why" }, `✗ ${e.error.split("\n")[0]}`)));
}

function chosen(number) {
  const back = h("button", { type: "button", class: "ghost back", "data-act": "close" }, "← All events");
  if (!detail || String(detail.number) !== number) return [back, failed ? empty("This event is not known", failed) : h("p", { class: "wait" }, "Asking the agent…")];
  const e = detail;
  const acted = e.handlers.filter((one) => one.change || one.error);
  return [back,
    h("div", { class: "card-head" }, h("h2", {}, `#${e.number} ${e.name}`), diffstat(e)),
    textWithoutName(e) && h("p", {}, textWithoutName(e)),
    h("p", { class: "faint" }, `${day(e.at)} ${clock(e.at)} · ${e.method} · took ${millis(e.tookMs)}${e.execMs ? `, ${millis(e.execMs)} in the dataplane` : ""}`,
      e.followUpTo && [" · follow-up to ", h("a", { href: `#/events/${encodeURIComponent(e.node)}/${e.followUpTo}` }, `#${e.followUpTo}`)]),
    e.error && h("div", { class: "note bad" }, h("p", {}, e.error)),
    e.reverted && h("div", { class: "note warning" }, h("p", {}, "The transaction failed and was undone.")),
    acted.length > 0 && [h("h3", {}, "Plugins"), h("ul", { class: "plugins" }, acted.map((one) => h("li", { class: one.error ? "bad" : null }, h("b", {}, one.revert ? `undo ${one.name}` : one.name), " ", one.error || one.change)))],
    h("h3", {}, "Transaction"),
    e.changes.length === 0 ? h("p", { class: "faint" }, "No value changed in the dataplane.") : diff(e),
    e.pending.length > 0 && [h("h3", {}, "Waiting for another value"), h("ul", { class: "diff" }, e.pending.map((c) => h("li", { class: "pend" }, h("span", { class: "sign" }, "…"), h("span", { class: "kind" }, c.kind), h("span", { class: "what" }, c.name))))],
  ];
}

const signs = { create: ["+", "add", "created"], delete: ["−", "del", "deleted"], update: ["~", "mod", "changed"], recreate: ["±", "mod", "created again"] };

function diff(e) {
  return [h("ul", { class: "diff" }, e.changes.map((c, i) => change(c, i))),
    e.more > 0 && h("p", { class: "hint" }, `${count(e.more, "more operation")}: `, command(`contiv-netctl events ${e.number} --node ${e.node}`))];
}

function change(c, i) {
  const [sign, kind, word] = signs[c.action] || ["?", "", c.action];
  const value = values.get(c.key);
  return h("li", { class: c.error ? "fail" : kind, "data-key": `${i} ${c.key}` },
    h("button", { type: "button", class: "line", "data-act": "value", "data-arg": c.key, "aria-expanded": value !== undefined, title: c.key },
      h("span", { class: "sign", "aria-hidden": "true" }, c.error ? "✗" : sign), h("span", { class: "sr" }, c.error ? "failed" : word),
      h("span", { class: "kind" }, c.kind || "value"), h("span", { class: "what" }, c.name), c.tookMs >= 1 && h("span", { class: "took" }, millis(c.tookMs))),
    c.error && h("p", { class: "why" }, c.error),
    value && h("div", { class: "value" }, now(value)));
}

function now(v) {
  if (v.loading) return h("p", { class: "faint" }, "Asking the agent…");
  if (v.error) return h("p", { class: "why" }, v.error);
  if (!v.state) return h("p", { class: "faint" }, "The node does not have this value any more.");
  const text = JSON.stringify(v.applied ?? v.desired ?? {}, null, 2);
  return [h("p", { class: "faint" }, `Now ${v.state}${v.applied && v.desired && JSON.stringify(v.applied) !== JSON.stringify(v.desired) ? "; what is desired differs" : ""}`), text !== "{}" && h("pre", {}, text)];
}
