// SPDX-License-Identifier: GPL-2.0-or-later
// Who waits: requests in Google's queue, those that failed, and jobs that have no request yet.

const FEW = 40;
const FEW_CARDS = 5;
const isPhone = () => matchMedia("(max-width: 50rem)").matches;
const STATE_WORDS = {
  CREATING: ["being asked", ""], ACCEPTED: ["queued", "warn"], PROVISIONING: ["VMs are coming", "good"],
  FAILED: ["failed", "bad"], UNKNOWN: ["unknown", ""],
  // What a job waits for that has no request in the queue.
  queued: ["queued", "warn"], turn: ["waits its turn", "warn"], retry: ["asked for again", "warn"], creating: ["VMs are coming", "good"],
  booting: ["VMs boot", "good"],
};

/** One row per request that matters, and per job that waits without one; longest waiting first. */
function queueRows(status) {
  const waiting = listOf(status.jobs).filter((job) => job.state === "waiting");
  const hasNone = (job) => !job.phase || job.phase === "retry" || job.phase === "turn";
  const requests = listOf(status.requests).filter((request) =>
    isActive(request) || (request.state === "FAILED" && (request.retry_at || waiting.some((job) => job.id === request.job && hasNone(job)))));
  const rows = requests.map((request) => ({
    request, state: request.state, nodes: request.nodes, n: request.n, nodeset: request.nodeset, since: request.created,
    isCut: status.jobs_waiting_omitted > 0,
    jobs: waiting.filter((job) => job.request === request.name || (job.id === request.job && (isActive(request) || hasNone(job)))),
  }));
  const served = new Set(rows.flatMap((row) => row.jobs));
  const alone = waiting.filter((job) => !served.has(job)).map((job) => ({
    request: null, state: job.phase || "turn", nodes: job.nodes, n: job.n, nodeset: job.nodeset, since: job.since, jobs: [job],
  }));
  return [...rows, ...alone].sort((left, right) => (left.since || "~").localeCompare(right.since || "~"));
}

function jobCell({jobs, request, isCut}) {
  // With a list that was cut, nobody knows.
  if (jobs.length === 0 && request && request.job) return [`${request.job}`, isCut ? null : el("small", {}, "no longer waiting")];
  if (jobs.length === 0) return ["–", el("small", {}, "no job: static or by hand")];
  return jobs.slice(0, 3).map((job) => el("div", {}, `${job.id} `, el("b", {}, job.name), " ", el("small", {}, job.user)))
    .concat(jobs.length > 3 ? el("small", {}, `and ${jobs.length - 3} more`) : []);
}

function stateCell({state, request}) {
  const [words, kind] = STATE_WORDS[state] || [state, ""];
  return [el("span", {class: `pill ${kind}`}, words), request && request.step > 0 ? el("small", {}, `fallback ${request.step}`) : null];
}

function reasonCell({request, jobs}) {
  if (!request) return jobs[0] && jobs[0].note ? [jobs[0].note] : [];
  const estimate = request.estimate ? el("div", {}, "Google expects VMs ", timeOf(request.estimate), " (", running(request.estimate, "in"), ")") : null;
  return [estimate, request.reason ? el("code", {}, request.reason) : null, request.message ? el("small", {class: "clamp", title: request.message}, `Google: ${request.message}`) : null];
}

function thenCell({request, jobs, state}) {
  if (!request && state === "retry") return ["again ", timeOf(jobs[0].retry_at), el("small", {}, running(jobs[0].retry_at, "in"))];
  if (request && request.retry_at) return ["again ", timeOf(request.retry_at), el("small", {}, running(request.retry_at, "in"))];
  if (request && request.gives_up) return ["gives up ", timeOf(request.gives_up), el("small", {}, running(request.gives_up, "in"))];
  return request && isActive(request) ? [el("span", {class: "muted"}, "waits on")] : [];
}

/** The cards on a phone that somebody has opened. */
const openRows = new Set();
const keyOf = (row) => (row.request ? `${row.request.group}/${row.request.name}` : `job ${row.jobs[0].id}`);

/** On a phone: what does not fit on the card. */
function tellButton(row) {
  const made = el("button", {class: "plain tell", type: "button", "aria-expanded": String(openRows.has(keyOf(row)))}, "why");
  made.addEventListener("click", () => {
    const isOpen = !openRows.delete(keyOf(row));
    if (isOpen) openRows.add(keyOf(row));
    made.setAttribute("aria-expanded", String(isOpen));
    made.closest("tr").classList.toggle("open", isOpen);
  });
  return made;
}

const QUEUE_COLUMNS = [
  {title: "Job", class: "roomy c-job", of: jobCell},
  {title: "Nodeset", class: "roomy c-set", of: (row) => [row.nodeset, row.request && listOf(row.request.zones).length > 0 ?
    el("small", {}, row.request.zones.map((zone, index) => [index > 0 ? ", " : "", el("span", {class: "tight"}, zone)]).flat()) : null]},
  {title: "VMs", class: "roomy c-vms", of: (row) => [String(row.n), el("small", {}, nodesText(row.nodes))]},
  {title: "State", class: "c-state", of: (row) => [...stateCell(row), tellButton(row)]},
  {title: "Waiting", class: "tight c-since", of: (row) => [running(row.since, "for"), row.since ? el("small", {}, "since ", timeOf(row.since)) : null]},
  {title: "Attempt", class: "c-attempt", of: (row) => (row.request ? [String(row.request.attempt || 1)] : [])},
  {title: "Why", class: "reason", of: reasonCell},
  {title: "Then", class: "tight c-then", of: thenCell},
];

let showsWholeQueue = false;

function showQueue(status) {
  const rows = queueRows(status);
  const few = isPhone() ? FEW_CARDS : FEW;
  const shown = showsWholeQueue ? rows : rows.slice(0, few);
  byId("queue-count").textContent = rows.length > 0 ? `${rows.length}${queueOmitted(status) ? "+" : ""}` : "";
  fill(byId("queue"), rows.length > 0 ? [table("Who waits for VMs", QUEUE_COLUMNS, shown), queueOmitted(status)] : el("p", {class: "empty"}, whyUnknown(status) || "Nobody waits for VMs."));
  byId("queue").querySelectorAll("tbody tr").forEach((line, index) => line.classList.toggle("open", openRows.has(keyOf(shown[index]))));
  showMore(byId("queue-more"), rows.length, shown.length, few);
}

/** How many are not in the lists that the sweeper sends. */
function queueOmitted(status) {
  const requests = activeCount(status) - listOf(status.requests).filter(isActive).length;
  const jobs = status.jobs_waiting_omitted || 0;
  const parts = [requests > 0 ? plural(requests, "request") : "", jobs > 0 ? plural(jobs, "job") : ""].filter(Boolean);
  return parts.length > 0 ? el("p", {class: "empty"}, `and ${parts.join(", ")} more`) : null;
}

/** The button below a list that was cut. */
function showMore(button, all, shown, few) {
  button.hidden = all <= few;
  button.textContent = all > shown ? `Show all ${all}` : `Show the first ${few}`;
}
