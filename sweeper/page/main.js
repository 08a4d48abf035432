// SPDX-License-Identifier: GPL-2.0-or-later
// Asks for status.json again and again, and shows it.

const TOKEN = "flex-start-token";
const LONGEST_PAUSE = 60000;
let status = null;
let texts = {};  // of what is shown, by section
let timer = 0;
let failures = 0;
let awaySince = 0;
let nextTry = 0;
let wasNow = "";
let takenAt = 0;  // by this browser's clock

// ---- the head ----

function setPill(id, words, kind) {
  byId(id).textContent = words;
  byId(id).className = `pill ${kind}`;
}

/** The time after which silence of the sweeper is loud. */
function patienceMs() {
  const failed = Math.min(3, status.failures_in_a_row || 0);
  return Math.max(60000, 4000 * (status.interval_seconds || 15)) + 1000 * (status.interval_seconds || 15) * (2 ** failed - 1);
}

function isStale() {
  if (!status || status.state === "passive" || status.state === "stopped") return false;
  const last = toTime(status.last_complete_round) || toTime(status.started);
  return nowTime() - last > patienceMs();
}

function alertsNow() {
  const alerts = [];
  const add = (kind, text, more) => alerts.push({kind, text, more: more || ""});
  if (awaySince > 0) add("error", `The sweeper does not answer since ${clockText(awaySince, true)}: what is below is old.`, "It may have stopped: systemctl status flex-sweeper. This page tries again by itself.");
  if (!status) return alerts;
  if (status.state === "stopped") add("error", "The sweeper has stopped.");
  if (isStale()) {
    const last = toTime(status.last_complete_round);
    add("error", isNaN(last) ? "No round has been complete since the sweeper started." : `The last complete round was at ${clockText(last, true)}: what is below is old, and nobody looks after the VMs.`, status.why);
  } else if (status.state === "waiting") {
    add("warning", "The sweeper cannot see everything, so it decides nothing.", status.why);
  }
  if (status.state === "passive") add("warning", "This sweeper is passive.", status.why);
  for (const set of listOf(status.nodesets)) {
    if (set.stopped && !set.paused) add("error", `Nodeset ${set.name} is stopped: no VMs are asked for.`, set.stopped);
  }
  if (listOf(status.leaks).length > 0) add("error", `${plural(status.leaks.length, "thing")} leaked: see Trouble.`);
  return alerts;
}

function showAlerts() {
  const alerts = alertsNow();
  // Screen readers read it out whenever it changes.
  const text = JSON.stringify(alerts);
  if (text === texts.alerts) return;
  texts.alerts = text;
  fill(byId("alerts"), alerts.map(({kind, text: words, more}) => el("p", {class: `alert ${kind}`}, words, more ? el("small", {}, more) : null)));
}

function showHead() {
  document.title = whyUnknown(status) ? `${status.cluster || "Flex Start"}: ${status.state}` : `${status.cluster || "Flex Start"}: ${listOf(status.jobs).filter((job) => job.state === "waiting").length + (status.jobs_waiting_omitted || 0)} waiting`;
  byId("cluster").textContent = status.cluster || "Flex Start";
  byId("where").textContent = [status.region, "Flex Start"].filter(Boolean).join(" · ");
  const kinds = {active: "good", waiting: "warn", passive: "warn", stopped: "bad", starting: "warn"};
  setPill("state", isStale() ? `${status.state}, silent` : status.state, isStale() ? "bad" : kinds[status.state] || "");
  const round = status.last_round || {};
  const trouble = [round.failed ? `${round.failed} failed` : "", round.postponed ? `${round.postponed} postponed` : ""].filter(Boolean).join(", ");
  fill(byId("round"), `#${status.round || 0} `, running(status.last_complete_round, "ago") || "none complete", " ",
    el("small", {title: `${round.calls || 0} calls of Compute Engine, ${round.done || 0} actions`}, `${round.milliseconds || 0} ms${trouble ? ", " + trouble : ""}`));
  byId("version").textContent = `slurm-flex-start ${status.version || ""}, a round every ${status.interval_seconds || "?"} s`;
}

// ---- all of it ----

const SECTIONS = [
  ["totals", showTotals, ["looked", "nodesets", "requests", "active_requests"]], ["nodesets", showNodesets, ["looked", "state", "nodesets"]],
  ["queue", showQueue, ["looked", "state", "requests", "active_requests", "jobs", "jobs_waiting_omitted"]],
  ["timeline", showTimeline, ["looked", "state", "vms", "vms_omitted", "jobs", "jobs_running_omitted"]],
  ["trouble", showTrouble, ["leaks", "retries", "shut_ways", "repairs"]], ["actions", showActions, ["actions"]],
];

/** What has not changed is left alone: a text that is being read or marked stays. */
function show(force) {
  if (!status) return;
  byId("content").hidden = false;
  showHead();
  for (const [name, render, parts] of SECTIONS) {
    const text = JSON.stringify(parts.map((part) => status[part]), (key, value) =>
      (key === "waited_seconds" || key === "left_seconds" ? undefined : value));
    const isOld = name === "timeline" && Date.now() - (texts.timelineTime || 0) > 30000;
    if (text === texts[name] && force !== true && force !== name && !isOld) continue;
    texts[name] = text;
    if (name === "timeline") texts.timelineTime = Date.now();
    render(status);
  }
  showAlerts();
}

/** A change that we have seen happen is fresh: if it seems old or new, a clock is wrong. Of what changed while nobody looked, nobody knows when. */
function learnSkew(now) {
  const hasWatched = Date.now() - takenAt < 20000;
  takenAt = Date.now();
  if (wasNow && now !== wasNow && hasWatched) {
    const apart = Date.now() - toTime(now);
    const slack = 1000 * (status.interval_seconds || 15) + 15000;
    clockSkew = apart > slack || apart < -5000 ? apart : 0;
  }
  wasNow = now;
}

// ---- asking ----

async function fetchStatus() {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const stop = new AbortController();
  const limit = setTimeout(() => stop.abort(), 20000);
  try {
    const answer = await fetch("status.json", {headers, cache: "no-store", signal: stop.signal});
    if (answer.status === 401) return {isDenied: true, hadToken: Boolean(token)};
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return {status: await answer.json()};
  } finally {
    clearTimeout(limit);
  }
}

function plan(pause) {
  clearTimeout(timer);
  nextTry = Date.now() + pause;
  if (!document.hidden) timer = setTimeout(poll, pause);
}

function askForToken(hadToken) {
  byId("login").hidden = false;
  byId("content").hidden = true;
  byId("forget").hidden = true;
  const error = byId("login-error");
  error.hidden = !hadToken;
  error.textContent = hadToken ? "The sweeper does not take this token." : "";
  setPill("link", "token needed", "warn");
  sessionStorage.removeItem(TOKEN);
  byId("token").focus();
}

function take(answer) {
  status = answer.status;
  learnSkew(status.now || "");
  failures = 0;
  awaySince = 0;
  document.body.classList.remove("away");
  byId("login").hidden = true;
  byId("forget").hidden = sessionStorage.getItem(TOKEN) === null;
  setPill("link", "live", "good");
  show();
  plan(Math.min(10000, Math.max(1000, (status.interval_seconds || 15) * 500)));
}

function miss() {
  failures += 1;
  if (awaySince === 0) awaySince = nowTime();
  document.body.classList.add("away");
  plan(Math.min(LONGEST_PAUSE, 1000 * 2 ** Math.min(failures, 6)));
  showLink();
  showAlerts();
}

function showLink() {
  if (failures > 0) setPill("link", `away, next try in ${spanText(nextTry - Date.now())}`, "bad");
}

async function poll() {
  clearTimeout(timer);
  let answer = null;
  try {
    answer = await fetchStatus();
  } catch (error) {
    miss();
    return;
  }
  if (answer.isDenied) askForToken(answer.hadToken);
  else take(answer);
}

// ---- what people do ----

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("token").value = "";
  if (!/^[\x21-\x7e]+$/.test(token)) return;
  sessionStorage.setItem(TOKEN, token);
  poll();
});
byId("forget").addEventListener("click", () => {
  sessionStorage.removeItem(TOKEN);
  status = null;
  texts = {};
  clearTimeout(timer);
  showAlerts();
  askForToken(false);
});
byId("queue-more").addEventListener("click", () => {
  showsWholeQueue = !showsWholeQueue;
  show("queue");
});
byId("timeline-more").addEventListener("click", () => {
  showsWholeTimeline = !showsWholeTimeline;
  show("timeline");
});
byId("timeline-filter").addEventListener("input", () => show("timeline"));
byId("timeline-span").addEventListener("change", () => show("timeline"));
byId("actions-filter").addEventListener("input", () => show("actions"));
byId("actions-notes").addEventListener("change", () => show("actions"));
window.addEventListener("resize", () => show("timeline"));
matchMedia("(max-width: 50rem)").addEventListener("change", () => show("queue"));
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden && byId("login").hidden) poll();
});
setInterval(() => {
  if (document.hidden) return;
  tick();
  showLink();
  if (status) showAlerts();
}, 1000);
poll();
