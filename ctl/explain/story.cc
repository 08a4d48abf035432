// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/explain/story.h"

#include "ctl/job_name.h"
#include "ctl/terminal.h"
#include "lib/core/duration.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

const Job* find_job(const Facts& facts, JobId id) {
  const auto& jobs = facts.shot.jobs.items;
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.id == id; });
  return found == jobs.end() ? nullptr : &*found;
}

bool is_listed_request(const Subject& subject, const Facts& facts) {
  const auto& groups = facts.shot.groups;
  return std::any_of(groups.begin(), groups.end(), [&](const SweptGroup& group) {
    return std::any_of(group.requests.begin(), group.requests.end(), [&](const auto& request) {
      return subject.is_request(group.group.name.text, request.name.text);
    });
  });
}

bool is_request(const Subject& subject, const std::vector<Event>& events, const Facts& facts) {
  return is_listed_request(subject, facts) ||
         std::any_of(events.begin(), events.end(), [&](const Event& event) {
           return subject.is_request(event.group, event.request);
         });
}

bool is_node(const std::string& name, const std::vector<Event>& events, const Facts& facts) {
  const NodeName node{name};
  if (facts.config.find(node) != nullptr) return true;
  const auto& nodes = facts.shot.nodes.items;
  if (std::any_of(nodes.begin(), nodes.end(), [&](const Node& one) { return one.name == node; }))
    return true;
  for (const SweptGroup& group : facts.shot.groups) {
    for (const Instance& instance : group.instances) {
      if (instance.name == node) return true;
    }
  }
  return !select_events({.kind = Subject::Kind::Node, .name = name}, events, facts).empty();
}

/// The task or part that is typed so.
Result<Subject> find_part(std::string_view text, const JobName& job_name, const Facts& facts) {
  for (const Job& job : facts.shot.jobs.items) {
    if (job_name.is(job))
      return Subject{.kind = Subject::Kind::Job, .name = std::string(text), .job = job.id};
  }
  const std::string_view what = job_name.kind == JobName::Kind::Task ? "task" : "part";
  return Error{ErrorKind::NotFound,
               fmt::format("Slurm does not know {} {} of job {} (any more): give the {}'s own "
                           "job id, which sacct and the logs have",
                           what,
                           job_name.number,
                           job_name.whole,
                           what)};
}

bool has(const std::vector<Event>& events, std::string_view what) {
  return std::any_of(
      events.begin(), events.end(), [&](const Event& event) { return event.what == what; });
}

/// The history says who made it, or that it is queued.
bool is_told(const std::vector<Event>& events, const Subject& request) {
  return std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return (event.what == "requested" || event.what == "queued") &&
           request.is_request(event.group, event.request);
  });
}

// ---- what only Slurm and Google know ----

void add_line(std::vector<StoryLine>& lines, TimePoint when, const char* who, std::string text) {
  if (when == TimePoint{}) return;
  lines.push_back({.when = when, .who = who, .text = printable(text), .event = {}});
}

void add_job(std::vector<StoryLine>& lines, const Job& job, const std::vector<Event>& events) {
  add_line(
      lines,
      job.submit_time,
      "Slurm",
      fmt::format("job {} is submitted to partition {}, {}",
                  job.id,
                  job.partition,
                  job.time_limit ? fmt::format("TimeLimit {}", format_slurm_time(*job.time_limit))
                                 : "without a TimeLimit"));
  if (!job.holds_nodes()) return;
  const std::string nodes = fold_hostlist(job.nodes);
  // While it waits for its nodes its start is the moment when it got them.
  if (job.is_configuring)
    add_line(
        lines, job.start_time, "Slurm", fmt::format("gives job {} its nodes: {}", job.id, nodes));
  else if (!has(events, "job_started"))
    add_line(lines, job.start_time, "Slurm", fmt::format("job {} starts on {}", job.id, nodes));
}

void add_request(std::vector<StoryLine>& lines,
                 const std::string& group,
                 const ResizeRequest& request,
                 const std::vector<Event>& events,
                 const Facts& facts) {
  const std::string& name = request.name.text;
  if (is_told(events, {.kind = Subject::Kind::Request, .name = name, .job = 0, .group = group}))
    return;
  add_line(lines,
           request.created,
           "Google",
           fmt::format("gets request {} for {} VMs, nodes {}, to live {} (the history does not say "
                       "from whom)",
                       request_label(facts, group, name),
                       request.nodes.size(),
                       fold_hostlist(request.nodes),
                       format_slurm_time(request.run_duration)));
}

bool concerns(const Subject& subject, const std::string& group, const ResizeRequest& request) {
  switch (subject.kind) {
    case Subject::Kind::Job:
      return request_job(request) == subject.job;
    case Subject::Kind::Node:
      return std::find(request.nodes.begin(), request.nodes.end(), NodeName{subject.name}) !=
             request.nodes.end();
    case Subject::Kind::Request:
      return subject.is_request(group, request.name.text);
  }
  return false;
}

/// Nodes of jobs are told by their jobs' stories.
std::vector<StoryLine> live_lines(const Subject& subject,
                                  const std::vector<Event>& events,
                                  const Facts& facts) {
  std::vector<StoryLine> lines;
  if (const Job* const job = find_job(facts, subject.job);
      subject.kind == Subject::Kind::Job && job != nullptr)
    add_job(lines, *job, events);
  for (const SweptGroup& group : facts.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      const std::string& name = group.group.name.text;
      if (concerns(subject, name, request)) add_request(lines, name, request, events, facts);
    }
  }
  return lines;
}

// ---- around it ----

std::string title_of(const Subject& subject, const Facts& facts) {
  switch (subject.kind) {
    case Subject::Kind::Job:
      return fmt::format("Job {}", subject.name);
    case Subject::Kind::Node: {
      const Config::Place* const place = facts.config.find({subject.name});
      return place == nullptr ? fmt::format("Node {}", subject.name)
                              : fmt::format("Node {} of nodeset {}",
                                            subject.name,
                                            facts.config.nodesets[place->nodeset].name);
    }
    case Subject::Kind::Request:
      return fmt::format("Request {}", subject.text());
  }
  return {};
}

std::vector<std::string> notes_of(const Subject& subject, const Facts& facts) {
  std::vector<std::string> notes = facts.notes;
  const bool is_job = subject.kind == Subject::Kind::Job;
  if (is_job && facts.has_slurm && find_job(facts, subject.job) == nullptr)
    notes.push_back(
        fmt::format("Slurm does not know job {} any more; from the history:", subject.name));
  const TimePoint now = facts.shot.now;
  const Seconds late = std::max(Seconds{120}, 4 * facts.config.sweeper.interval);
  if (facts.last_sweep == TimePoint{})
    notes.emplace_back("The sweeper has not made a round yet that could be seen: is it running?");
  else if (now - facts.last_sweep > late)
    notes.push_back(
        fmt::format("The sweeper has made no complete round since {}: what comes next "
                    "waits for it (flexctl status, systemctl status flex-sweeper)",
                    clock_text(facts.last_sweep, now)));
  return notes;
}

bool is_listed(const Subject& subject, const Facts& facts) {
  switch (subject.kind) {
    case Subject::Kind::Job:
      return find_job(facts, subject.job) != nullptr;
    case Subject::Kind::Node:
      return is_node(subject.name, {}, facts);
    case Subject::Kind::Request:
      return is_listed_request(subject, facts);
  }
  return false;
}

/// With the request's name as it can be told from others.
StoryLine labelled_line(const Event& event, const Facts& facts) {
  Event labelled = event;
  // Who asks says in which group.
  if (event.what != "requested" && !event.request.empty())
    labelled.request = request_label(facts, event.group, event.request);
  StoryLine line = line_of(labelled, facts.shot.now);
  line.event = event;
  return line;
}

}  // namespace

std::string request_label(const Facts& facts, const std::string& group, const std::string& name) {
  const auto& groups = facts.shot.groups;
  const bool is_shared = std::any_of(groups.begin(), groups.end(), [&](const SweptGroup& other) {
    return other.group.name.text != group &&
           std::any_of(other.requests.begin(),
                       other.requests.end(),
                       [&](const ResizeRequest& request) { return request.name.text == name; });
  });
  return is_shared && !group.empty() ? fmt::format("{}/{}", group, name) : name;
}

Result<Subject> find_subject(std::string_view text,
                             const std::vector<Event>& events,
                             const Facts& facts) {
  const auto job = parse_job_name(text);
  if (job && job->kind == JobName::Kind::Job)
    return Subject{.kind = Subject::Kind::Job, .name = std::string(text), .job = job->whole};
  if (job) return find_part(text, *job, facts);
  const std::size_t slash = text.rfind('/');
  Subject request{.kind = Subject::Kind::Request, .name = std::string(text)};
  if (slash != std::string_view::npos) {
    request.name = std::string(text.substr(slash + 1));
    request.group = std::string(text.substr(0, slash));
  }
  const std::string name(text);
  if (facts.config.find({name}) != nullptr)
    return Subject{.kind = Subject::Kind::Node, .name = name};
  if (is_request(request, events, facts)) return request;
  if (is_node(name, events, facts)) return Subject{.kind = Subject::Kind::Node, .name = name};
  return Error{ErrorKind::NotFound,
               fmt::format("no node, and no request that is known, is called '{}': flexctl status "
                           "lists those that there are",
                           printable(name))};
}

Story tell_story(const Subject& subject,
                 const std::vector<Event>& events,
                 const Facts& facts,
                 std::size_t most) {
  const std::vector<Event> own = select_events(subject, events, facts);
  const Picture picture{facts.config, facts.shot};
  Story story;
  story.subject = subject;
  story.title = title_of(subject, facts);
  story.lines = live_lines(subject, own, facts);
  story.is_known = !own.empty() || !story.lines.empty() || is_listed(subject, facts);
  for (const Event& event : own) story.lines.push_back(labelled_line(event, facts));
  std::stable_sort(
      story.lines.begin(), story.lines.end(), [](const StoryLine& left, const StoryLine& right) {
        return left.when < right.when;
      });
  if (story.lines.size() > most) {
    story.left_out = story.lines.size() - most;
    story.lines.erase(story.lines.begin(),
                      story.lines.begin() + static_cast<std::ptrdiff_t>(story.left_out));
  }
  story.notes = notes_of(subject, facts);
  story.now = how_it_stands(subject, own, facts, picture);
  return story;
}

}  // namespace flex
