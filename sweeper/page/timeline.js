// SPDX-License-Identifier: GPL-2.0-or-later
// VMs as bars from their start to their end, with the jobs on them.

const MINUTE = 60000;
const STEPS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080].map((minutes) => minutes * MINUTE);
const SOON = 15 * MINUTE;
const MOST_JOBS = 3;
let showsWholeTimeline = false;

const timesOf = (rows, name) => rows.map((row) => toTime(row[name])).filter((time) => !isNaN(time)).sort((left, right) => left - right);

/** The time that is shown: so many seconds from a little before now on, "all" of it, or what "fits" most. */
function windowOf(rows, span) {
  const now = nowTime();
  if (Number(span) > 0) return {from: now - span * 100, to: now + span * 900};
  const [starts, ends] = [timesOf(rows, "since"), timesOf(rows, "ends")];
  let from = Math.min(now - 5 * MINUTE, ...starts);
  let to = Math.max(now + 5 * MINUTE, ...ends);
  if (span === "fit") {
    // A few VMs that live for days must not make slivers of all others.
    const usual = ends.length > 0 ? ends[Math.floor((ends.length - 1) / 2)] - now : 0;
    to = Math.max(now + 5 * MINUTE, ...ends.filter((end) => end - now <= 4 * usual));
    from = Math.max(from, now - (to - now));
  }
  return {from, to: to + (to - from) * 0.02};
}

const percent = (time, frame) => ((time - frame.from) / (frame.to - frame.from)) * 100;
const within = (value) => Math.min(100, Math.max(0, value));

/** Round times, few enough to be read. */
function ticksOf(frame, most) {
  const step = STEPS.find((candidate) => (frame.to - frame.from) / candidate <= most) || 4 * STEPS[STEPS.length - 1];
  const offset = new Date(frame.from).getTimezoneOffset() * MINUTE;
  const ticks = [];
  for (let time = Math.ceil((frame.from - offset) / step) * step + offset; time < frame.to; time += step) ticks.push({time, step});
  return ticks;
}

function tickText({time, step}) {
  const date = new Date(time);
  const day = date.toLocaleDateString(undefined, {day: "numeric", month: "short"});
  if (step >= 1440 * MINUTE) return day;
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  return clock === "00:00" ? day : clock;
}

function placed(element, left, right) {
  element.style.left = `${left}%`;
  element.style.width = `${right - left}%`;
  return element;
}

function axisOf(frame, ticks) {
  const track = el("div", {class: "track"}, ticks.map((tick) => {
    const at = percent(tick.time, frame);
    if (at < 3 || at > 97) return null;
    const mark = el("span", {class: "tick"}, tickText(tick));
    mark.style.left = `${at}%`;
    return mark;
  }));
  return el("li", {class: "axis", "aria-hidden": "true"}, el("span", {}), track, el("span", {}));
}

/** A job's part of the bar: from its start to its time limit. In percent of the bar. */
function jobBar(job, bar, index, count) {
  const start = toTime(job.since);
  const limit = job.time_limit_seconds ? start + job.time_limit_seconds * 1000 : bar.end;
  const inBar = (time) => within(((time - bar.start) / (bar.end - bar.start)) * 100);
  const [left, right] = [inBar(Math.max(start, bar.start)), inBar(Math.min(limit, bar.end))];
  const made = placed(el("span", {class: count > 1 ? "on thin" : "on", title: `job ${job.id} ${job.name} (${job.user})`},
    count > 1 ? null : `${job.id} ${job.name}`), left, right);
  made.style.top = `calc(${(index / count) * 100}% + 2px)`;
  made.style.bottom = `calc(${100 - ((index + 1) / count) * 100}% + 2px)`;
  return made;
}

function vmBar(row, jobs, frame) {
  const now = nowTime();
  const since = toTime(row.since);
  const ends = toTime(row.ends);
  const start = isNaN(since) ? Math.min(now, isNaN(ends) ? now : ends - MINUTE) : since;
  const end = isNaN(ends) ? Math.max(frame.to, start + MINUTE) : ends;
  if (end <= frame.from || start >= frame.to) return null;
  const bar = {start: Math.max(start, frame.from), end: Math.min(end, frame.to)};
  const cut = `${start < frame.from || isNaN(since) ? " cut-left" : ""}${end > frame.to || isNaN(ends) ? " cut-right" : ""}`;
  const made = placed(el("div", {class: `vm ${row.status}${cut}`}), percent(bar.start, frame), percent(bar.end, frame));
  const shown = jobs.filter((job) => job.state === "running").slice(0, MOST_JOBS);
  shown.forEach((job, index) => made.append(jobBar(job, bar, index, shown.length)));
  return made;
}

function jobsText(row, jobs) {
  const names = jobs.slice(0, MOST_JOBS).map((job) => `${job.id} ${job.name || ""}`.trim());
  const more = (row.jobs_n || listOf(row.jobs).length) - names.length;
  if (names.length === 0 && more <= 0) return "no job";
  return `${names.length + Math.max(more, 0) === 1 ? "job" : "jobs"} ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function laneOf(row, jobs, frame, ticks) {
  const left = toTime(row.ends) - nowTime();
  const grids = ticks.map(({time}) => {
    const line = el("span", {class: "grid"});
    line.style.left = `${percent(time, frame)}%`;
    return line;
  });
  return el("li", {class: "lane"},
    el("div", {class: "label"},
      el("span", {class: "nodes", title: row.nodes}, row.nodes),
      el("small", {}, [plural(row.n, "VM"), row.status, row.zone].filter(Boolean).join(" · ")),
      el("small", {}, jobsText(row, jobs))),
    el("div", {class: "track", "aria-hidden": "true"}, grids, vmBar(row, jobs, frame)),
    el("div", {class: "left"}, row.ends ? [el("span", {class: left < SOON ? "soon" : null}, running(row.ends, "left")), " ",
      el("small", {}, "ends ", timeOf(row.ends))] : el("small", {}, "end not known")));
}

function matches(row, jobs, words) {
  const text = [row.nodes, row.nodeset, row.group, row.request, row.zone, row.status, ...listOf(row.jobs), ...jobs.flatMap((job) => [job.name, job.user])]
    .join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

const wordsIn = (id) => byId(id).value.toLowerCase().split(/\s+/).filter(Boolean);

function showTimeline(status) {
  const known = new Map(listOf(status.jobs).map((job) => [job.id, job]));
  const jobsOf = (row) => listOf(row.jobs).map((id) => known.get(id) || {id, name: "", user: "", state: "unknown"});
  const words = wordsIn("timeline-filter");
  const all = listOf(status.vms);
  const rows = all.filter((row) => matches(row, jobsOf(row), words))
    .sort((left, right) => (left.ends || "~").localeCompare(right.ends || "~") || left.nodes.localeCompare(right.nodes));
  const shown = showsWholeTimeline ? rows : rows.slice(0, FEW);
  const frame = windowOf(shown, byId("timeline-span").value);
  const count = all.reduce((sum, row) => sum + row.n, status.vms_omitted || 0);
  byId("timeline-count").textContent = all.length > 0 ? `${plural(count, "VM")}${words.length > 0 ? `, ${plural(rows.length, "row")} found` : ""}` : "";
  const box = byId("timeline");
  if (rows.length === 0) {
    fill(box, el("p", {class: "empty"}, all.length > 0 ? "Nothing is found." : whyUnknown(status) || "There are no VMs."));
  } else {
    const ticks = ticksOf(frame, box.clientWidth < 600 ? 4 : 8);
    const lanes = el("ol", {class: "lanes"}, axisOf(frame, ticks), shown.map((row) => laneOf(row, jobsOf(row), frame, ticks)));
    lanes.style.setProperty("--now-at", `${within(percent(nowTime(), frame))}%`);
    const more = [status.vms_omitted ? `and ${plural(status.vms_omitted, "VM")} more` : "",
      status.jobs_running_omitted ? `${plural(status.jobs_running_omitted, "running job")} without name and bar` : ""].filter(Boolean);
    fill(box, lanes, more.length > 0 ? el("p", {class: "empty"}, more.join("; ")) : null);
  }
  showMore(byId("timeline-more"), rows.length, shown.length, FEW);
}
