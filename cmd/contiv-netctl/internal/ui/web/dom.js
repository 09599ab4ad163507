// Elements, their update in place, and the formats of numbers and times.

const svgNames = new Set(["svg", "g", "path", "rect", "circle", "text", "line", "title", "tspan"]);

// h creates an element. Text is never parsed as HTML.
export function h(name, attrs, ...children) {
  const el = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === false || value === null || value === undefined) continue;
    el.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    el.append(child instanceof Node ? child : String(child));
  }
  return el;
}

// Attributes that the user can change, by element: an update does not change them.
const kept = { DETAILS: ["open"], INPUT: ["value"], SELECT: ["value"] };

const keyOf = (node) => node.nodeType === 1 ? node.getAttribute("data-key") : null;
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

// morph replaces the children of target by those of tree, and keeps elements that are equal: focus, selection and scroll position stay.
export function morph(target, tree) {
  const keyed = new Map();
  for (const child of target.childNodes) if (keyOf(child) !== null) keyed.set(keyOf(child), child);
  let at = target.firstChild;
  for (const want of [...tree.childNodes]) {
    const key = keyOf(want);
    let have = key !== null ? keyed.get(key) : at;
    if (have && alike(have, want)) {
      if (have !== at) target.insertBefore(have, at);
      else at = at.nextSibling;
      update(have, want);
    } else {
      target.insertBefore(want, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function update(have, want) {
  if (have.nodeType !== 1) {
    if (have.data !== want.data) have.data = want.data;
    return;
  }
  const mine = kept[have.nodeName] || [];
  for (const { name } of [...have.attributes]) {
    if (!want.hasAttribute(name) && !mine.includes(name)) have.removeAttribute(name);
  }
  for (const { name, value } of want.attributes) {
    if (have.getAttribute(name) !== value && !mine.includes(name)) have.setAttribute(name, value);
  }
  if (have.hasAttribute("data-own")) return; // another function fills its content
  morph(have, want);
}

// show puts a view's content into the page.
export function show(target, ...children) {
  const tree = document.createElement("div");
  tree.append(...children.flat(Infinity).filter(Boolean));
  morph(target, tree);
}

const units = ["", "k", "M", "G", "T"];

// scaled formats a number with three digits and a unit: 1.23 M.
export function scaled(n, unit) {
  let i = 0;
  while (n >= 999.5 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  const digits = n >= 99.5 || (i === 0 && n >= 10) || n === 0 ? 0 : n >= 9.95 ? 1 : 2;
  return `${n.toFixed(digits)} ${units[i]}${unit}`;
}

export const count = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

export const millis = (ms) => ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : ms >= 10 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(2)} ms`;

export function clock(text) {
  const at = new Date(text);
  return at.toLocaleTimeString("en-GB", { hour12: false });
}

export function day(text) {
  return new Date(text).toLocaleDateString("en-CA");
}

export const marks = { good: "✓", warning: "!", bad: "✗", unknown: "?" };
const words = { good: "healthy", warning: "works, with a problem", bad: "not working", unknown: "not known" };

// mark shows a status by colour, sign and word.
export function mark(health) {
  return h("span", { class: `mark ${health}` }, h("span", { "aria-hidden": "true" }, marks[health]), h("span", { class: "sr" }, words[health]));
}

export const healthWord = (health) => words[health];

// empty is the text of a view without content: what is missing, why, and what to do.
export function empty(title, ...text) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, ...text));
}

export const code = (text) => h("code", {}, text);

// command is a command line with a button that copies it.
export function command(text) {
  return h("span", { class: "command" }, h("code", {}, text), h("button", { type: "button", class: "copy", "data-act": "copy", "data-arg": text, "aria-label": `Copy: ${text}` }, "Copy"));
}

// matches reports whether the texts contain all words of a filter.
export function matches(filter, ...texts) {
  const all = texts.flat().join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}
