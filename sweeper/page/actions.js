// SPDX-License-Identifier: GPL-2.0-or-later
// What was done and why, and what is not as it should be.

const isNote = (action) => action.rule === "job_note" || action.rule === "node_note";

// What was done as it should be needs no word.
const RESULTS = {failed: ["failed", "bad"], again: ["moment missed", "warn"], skipped: ["not begun", ""]};

function resultPill({result}) {
  const [words, kind] = RESULTS[result] || [];
  return words ? el("span", {class: `pill ${kind}`}, words) : null;
}

/** The last time; and how often the same was done before. */
function actionTime(action) {
  const often = action.times > 1 ? el("small", {}, `×${action.times.toLocaleString("en")} since `, timeOf(action.first)) : null;
  return [timeOf(action.time, true), often];
}

const ACTION_COLUMNS = [
  {title: "Time", of: actionTime},
  {title: "Action", of: (action) => [String(action.what).replaceAll("_", " "), " ", resultPill(action), el("small", {}, action.rule)]},
  {title: "On", of: (action) => [nodesText(action.nodes), el("small", {}, [action.target, action.job ? `job ${action.job}` : ""].filter(Boolean).join(" · "))]},
  {title: "Why", class: "reason", of: (action) => [action.why, action.error ? el("small", {class: "clamp", title: action.error}, action.error) : null]},
];

function showActions(status) {
  const words = wordsIn("actions-filter");
  const withNotes = byId("actions-notes").checked;
  const all = listOf(status.actions);
  const found = all.filter((action) => (withNotes || !isNote(action)) &&
    words.every((word) => Object.values(action).join(" ").toLowerCase().includes(word)));
  byId("actions-count").textContent = found.length === all.length ? String(all.length || "") : `${found.length} of ${all.length}`;
  const empty = all.length > 0 ? "Only comments were written; they are not shown." : "Nothing has been done since the sweeper started.";
  fill(byId("actions"), found.length > 0 ? table("The last actions, newest first", ACTION_COLUMNS, found.toReversed ? found.toReversed() : [...found].reverse()) :
    el("p", {class: "empty"}, words.length > 0 ? "Nothing is found." : empty));
}

const LEAK_COLUMNS = [
  {title: "What", of: (leak) => [leak.kind, el("small", {}, nodesText(leak.target))]},
  {title: "Since", of: (leak) => [timeOf(leak.since), el("small", {}, running(leak.since, "ago"))]},
  {title: "Why", class: "reason", of: (leak) => [leak.why]},
];

const RETRY_COLUMNS = [
  {title: "Nodes", of: (retry) => [nodesText(retry.nodes)]},
  {title: "Failed", of: (retry) => [`${plural(retry.attempts || 0, "attempt")}${retry.refusals ? `, ${plural(retry.refusals, "refusal")}` : ""}`]},
  {title: "Again", of: (retry) => [timeOf(retry.next), el("small", {}, running(retry.next, "in"))]},
  {title: "Why", class: "reason", of: (retry) => [retry.why]},
];

const SHUT_COLUMNS = [
  {title: "Group", of: (way) => [way.group]},
  {title: "For", of: (way) => [way.job ? `job ${way.job}` : "", el("small", {}, nodesText(way.nodes))]},
  {title: "Until", of: (way) => way.until ? [timeOf(way.until), el("small", {}, running(way.until, "in"))] : ["as long as it waits"]},
  {title: "Why", class: "reason", of: (way) => [way.why]},
];

const REPAIR_COLUMNS = [
  {title: "Node", of: (repair) => [nodesText(repair.node)]},
  {title: "New VMs", of: (repair) => [String(repair.count), repair.given_up ? el("small", {}, "given up: it stays drained") : null]},
  {title: "Last", of: (repair) => [timeOf(repair.last)]},
  {title: "Why", class: "reason", of: (repair) => [repair.reason]},
];

function showTrouble(status) {
  const parts = [["Leaked: of ours, and nobody needs it", LEAK_COLUMNS, status.leaks], ["Asked for again", RETRY_COLUMNS, status.retries],
    ["Not asked for there now", SHUT_COLUMNS, status.shut_ways],
    ["Nodes that got new VMs, last day", REPAIR_COLUMNS, status.repairs]]
    .filter(([, , rows]) => listOf(rows).length > 0)
    .map(([title, columns, rows]) => el("div", {class: "card"}, el("h3", {}, title), table(title, columns, rows)));
  byId("trouble-section").hidden = parts.length === 0;
  fill(byId("trouble"), parts);
}
