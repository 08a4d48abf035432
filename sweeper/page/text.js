// SPDX-License-Identifier: GPL-2.0-or-later
// Elements, times and words. Text from outside gets into the page only as text nodes and titles.

/** An element; props: class, title, data-*, and properties. Null children are left out. */
function el(tag, props, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined) continue;
    if (name === "class") made.className = value;
    else if (name.includes("-") || name === "role" || name === "scope") made.setAttribute(name, value);
    else made[name] = value;
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== "") made.append(child);
  }
  return made;
}

const byId = (id) => document.getElementById(id);
const listOf = (value) => (Array.isArray(value) ? value : []);
const pad = (number) => String(number).padStart(2, "0");
const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many || one + "s"}`;

/** Milliseconds; NaN for what is no time. */
const toTime = (iso) => (iso ? Date.parse(iso) : NaN);

/** How far this browser's clock is ahead of the sweeper's; 0 unless that is certain. */
let clockSkew = 0;
const nowTime = () => Date.now() - clockSkew;

/** "3 d 4 h", "2 h 13 min", "4 min", "12 s". */
function spanText(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  if (minutes >= 10) return `${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** "17:12:03" of today, else with the day; in this browser's zone. */
function clockText(time, withSeconds) {
  const date = new Date(time);
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}${withSeconds ? ":" + pad(date.getSeconds()) : ""}`;
  if (date.toDateString() === new Date(nowTime()).toDateString()) return clock;
  return `${date.toLocaleDateString(undefined, {weekday: "short", day: "numeric", month: "short"})} ${clock}`;
}

const utcText = (time) => new Date(time).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");

/** A time of day with UTC in its title; null for no time. */
function timeOf(iso, withSeconds) {
  const time = toTime(iso);
  return isNaN(time) ? null : el("time", {dateTime: iso, title: utcText(time)}, clockText(time, withSeconds));
}

/** Text that goes on by itself: "for 3 min", "in 2 h", "5 s ago". See tick(). */
function running(iso, kind) {
  const time = toTime(iso);
  if (isNaN(time)) return null;
  const made = el("span", {"data-kind": kind, "data-time": String(time)});
  tickOne(made);
  return made;
}

function tickOne(element) {
  const apart = nowTime() - Number(element.dataset.time);
  const texts = {
    for: () => spanText(apart),
    ago: () => `${spanText(apart)} ago`,
    in: () => (apart <= 0 ? `in ${spanText(-apart)}` : `${spanText(apart)} ago`),
    left: () => (apart <= 0 ? `${spanText(-apart)} left` : "over"),
  };
  const text = texts[element.dataset.kind]();
  if (element.textContent !== text) element.textContent = text;
}

function tick() {
  document.querySelectorAll("[data-kind]").forEach(tickOne);
}

const fill = (element, ...children) => element.replaceChildren(...children.flat().filter((child) => child));

/** A table whose rows become cards on a phone. Columns: {title, class, of(row) → children}. */
function table(caption, columns, rows) {
  const head = el("tr", {role: "row"}, columns.map((column) => el("th", {scope: "col", role: "columnheader"}, column.title)));
  const body = rows.map((row) => el("tr", {role: "row"}, columns.map((column) =>
    el("td", {role: "cell", "data-label": column.title, class: column.class}, column.of(row)))));
  return el("table", {role: "table"}, el("caption", {class: "unseen"}, caption),
    el("thead", {role: "rowgroup"}, head), el("tbody", {role: "rowgroup"}, body));
}

const nodesText = (nodes) => (nodes ? el("span", {class: "nodes", title: nodes}, nodes.length > 120 ? nodes.slice(0, 117) + "…" : nodes) : null);
