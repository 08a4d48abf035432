// SPDX-License-Identifier: GPL-2.0-or-later
// The nodesets, and all of it in a few numbers.

const STATES = [
  ["allocated", "busy"], ["idle", "idle"], ["booting", "booting"], ["waiting", "waiting for a VM"],
  ["draining", "draining"], ["drained", "drained"], ["powering_down", "powering down"], ["down", "down"], ["unknown", "not in Slurm"], ["unusable", "undrained while off"], ["powered_down", "off"],
];

/** The states that there are, known ones first, each as [state, words, count]. */
function statesOf(set) {
  const states = set.states || {};
  const known = STATES.filter(([state]) => states[state] > 0);
  const others = Object.keys(states).filter((state) => !STATES.some(([name]) => name === state));
  return [...known.map(([state, words]) => [state, words, states[state]]),
    ...others.map((state) => ["unknown", state, states[state]])];
}

function stackOf(states) {
  const words = states.map(([, name, count]) => `${count} ${name}`).join(", ");
  return el("div", {class: "stack", role: "img", "aria-label": words}, states.map(([state, name, count]) => {
    const part = el("i", {class: `is-${state}`, title: `${count} ${name}`});
    part.style.flexGrow = count;
    return part;
  }));
}

/** Why nothing is known of nodes, VMs and jobs; empty: it is. */
function whyUnknown(status) {
  if (status.looked !== false) return "";
  return status.state === "passive" ? "Passive: see the page of the sweeper that is active." : "Not looked yet.";
}

function nodesetCard(set) {
  const states = statesOf(set);
  const byState = set.nodes_by_state || {};
  const facts = [
    el("span", {}, plural(set.vms || 0, "VM")),
    set.jobs_waiting ? el("span", {}, `${plural(set.jobs_waiting, "job")} waiting`) : null,
    set.jobs_running ? el("span", {}, `${plural(set.jobs_running, "job")} running`) : null,
    set.static_nodes ? el("span", {}, `${set.static_nodes} static`) : null,
    set.next_end ? el("span", {}, "next end ", timeOf(set.next_end)) : null,
  ];
  return el("article", {class: "card"},
    el("div", {class: "set-head"}, el("h3", {}, set.name), el("small", {}, `${plural(set.nodes || 0, "node")} · ${set.mode || "queued"}`)),
    states.length > 0 ? stackOf(states) : null,
    el("ul", {class: "legend"}, states.map(([state, words, count]) =>
      el("li", {title: byState[state] || null}, el("span", {class: `swatch is-${state}`}), el("b", {}, count.toLocaleString("en")), ` ${words}`))),
    set.paused ? el("p", {}, el("span", {class: "pill long"}, set.paused), el("small", {}, "no VMs are asked for")) : null,
    set.stopped && !set.paused ? el("p", {class: "alert error"}, "Stopped", el("small", {}, set.stopped)) : null,
    el("div", {class: "set-facts"}, facts));
}

function showNodesets(status) {
  const sets = listOf(status.nodesets);
  const unknown = whyUnknown(status);
  fill(byId("nodesets"), unknown ? el("p", {class: "empty"}, unknown) : sets.length > 0 ? sets.map(nodesetCard) : el("p", {class: "empty"}, "None are configured."));
}

const WAITING_STATES = ["CREATING", "ACCEPTED", "PROVISIONING", "UNKNOWN"];
const isActive = (request) => WAITING_STATES.includes(request.state);

/** All of them, also those that are not in the list. */
const activeCount = (status) => Math.max(status.active_requests || 0, listOf(status.requests).filter(isActive).length);

function showTotals(status) {
  const sum = (name) => listOf(status.nodesets).reduce((total, set) => total + (set[name] || 0), 0);
  const waiting = listOf(status.requests).filter(isActive);
  const ends = listOf(status.nodesets).map((set) => set.next_end).filter(Boolean).sort();
  const oldest = waiting.map((request) => request.created).filter(Boolean).sort()[0];
  const tile = (name, value, more) => el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, more)));
  fill(byId("totals"), whyUnknown(status) ? [] : [
    tile("Jobs waiting", String(sum("jobs_waiting")), null),
    tile("Jobs running", String(sum("jobs_running")), null),
    tile("Requests in Google's queue", String(activeCount(status)), oldest ? ["longest ", running(oldest, "for")] : null),
    tile("VMs", sum("vms").toLocaleString("en"), `of ${plural(sum("nodes"), "node")}`),
    tile("Next VM ends", ends.length > 0 ? timeOf(ends[0]) : "–", ends.length > 0 ? running(ends[0], "in") : null)]);
}
