// SPDX-License-Identifier: GPL-2.0-or-later
// Events in words.
#include "ctl/explain/story.h"
#include "ctl/terminal.h"
#include "lib/core/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <unordered_map>

namespace flex {

namespace {

std::string more(const Event& event, const char* key) {
  const auto found = event.more.find(key);
  return found == event.more.end() ? std::string{} : found->second;
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "14:02:31" of an ISO time.
std::string clock_of(const std::string& iso, TimePoint now) {
  const auto time = parse_time(iso);
  return time ? clock_text(*time, now) : iso;
}

std::string vms(std::size_t n) {
  return fmt::format("{} VM{}", n, n == 1 ? "" : "s");
}

/// "a-[0-3] (4 nodes)".
std::string on(const Event& event) {
  if (event.n <= 1) return event.nodes;
  return fmt::format("{} ({} nodes)", event.nodes, event.n);
}

std::string of_job(const Event& event) {
  return event.job == 0 ? "" : fmt::format(" for job {}", event.job);
}

std::string because(const Event& event) {
  return event.why.empty() ? "" : fmt::format(": {}", event.why);
}

/// "CODE: message".
std::string google_says(const Event& event) {
  const std::string code = more(event, "code");
  const std::string message = more(event, "message");
  if (code.empty() || message.empty()) return code + message;
  return fmt::format("{}: {}", code, message);
}

std::string tell_requested(const Event& event, TimePoint /*now*/) {
  const std::string what = event.request.empty()
                               ? fmt::format("asks for {} one by one", vms(event.n))
                               : fmt::format("requests {}: {}", vms(event.n), event.request);
  std::string text = fmt::format("{}{}", what, of_job(event));
  if (!event.group.empty()) text += fmt::format(" in group {}", event.group);
  text += fmt::format(", nodes {}", event.nodes);
  if (const std::string run = more(event, "run_s"); !run.empty())
    text += fmt::format(", to live {}", format_slurm_time(Seconds{number(run)}));
  if (const std::string how = more(event, "how"); !how.empty()) text += fmt::format(" ({})", how);
  if (const std::string zones = more(event, "zones"); !zones.empty())
    text += fmt::format(", zones {}", zones);
  if (const std::string attempt = more(event, "attempt"); !attempt.empty())
    text += fmt::format(", attempt {}", attempt);
  return event.why.empty() ? text : fmt::format("{}; because {}", text, event.why);
}

std::string tell_attempt(const Event& event, TimePoint now) {
  std::string text = fmt::format("cannot serve {} yet: {}", event.request, google_says(event));
  if (text.ends_with('.')) text.pop_back();
  if (const std::string estimate = more(event, "estimate"); !estimate.empty())
    text += fmt::format("; estimates {}", clock_of(estimate, now));
  return text;
}

std::string tell_vm_up(const Event& event, TimePoint now) {
  std::string text = fmt::format("{} up: {}", event.n == 1 ? "VM is" : "VMs are", on(event));
  if (const std::string zone = more(event, "zone"); !zone.empty())
    text += fmt::format(" in {}", zone);
  if (!event.request.empty()) text += fmt::format(", from {}", event.request);
  if (const std::string ends = more(event, "ends"); !ends.empty())
    text += fmt::format("; ends at {}", clock_of(ends, now));
  return text;
}

std::string tell_vm_gone(const Event& event, TimePoint now) {
  const std::string ended = more(event, "ended");
  const std::string ends = more(event, "ends");
  const std::string subject = event.n == 1 ? "VM is" : "VMs are";
  if (ended == "lease_end")
    return fmt::format("{} gone, at the end of the run duration ({}): {}",
                       subject,
                       clock_of(ends, now),
                       on(event));
  if (ended == "deleted") return fmt::format("{} deleted: {}", subject, on(event));
  return fmt::format("{} lost{}: {}",
                     subject,
                     ends.empty() ? "" : fmt::format(" before the end at {}", clock_of(ends, now)),
                     on(event));
}

std::string tell_job_ended(const Event& event, TimePoint /*now*/) {
  const std::string state = more(event, "state");
  const std::string began = more(event, "started") == "no" ? ", before it had started" : "";
  if (state == "REQUEUED")
    return fmt::format("job {} goes back to Slurm's queue{}", event.job, began);
  return fmt::format("job {} is over{}{}", event.job, state.empty() ? "" : ": " + state, began);
}

std::string tell_refused(const Event& event, TimePoint /*now*/) {
  const std::string then = more(event, "then");
  return fmt::format("no request{} for {}{}{}",
                     of_job(event),
                     on(event),
                     because(event),
                     then.empty() ? "" : fmt::format("; {}", then));
}

using Words = std::function<std::string(const Event&, TimePoint)>;

struct Telling {
  const char* who;  ///< null: the program
  Words words;
};

Words fixed(const char* format_with_nodes) {
  return [=](const Event& event, TimePoint) {
    return fmt::format(fmt::runtime(format_with_nodes), on(event)) + because(event);
  };
}

Words of_request(const char* format_with_request) {
  return [=](const Event& event, TimePoint) {
    return fmt::format(fmt::runtime(format_with_request), event.request) + because(event);
  };
}

const std::unordered_map<std::string, Telling>& tellings() {
  static const std::unordered_map<std::string, Telling> all{
      {"asked",
       {nullptr,
        [](const Event& event, TimePoint) {
          return fmt::format("is run by slurmctld for {}{}", on(event), of_job(event));
        }}},
      {"requested", {nullptr, tell_requested}},
      {"requested_before", {nullptr, of_request("finds that {} was made before")}},
      {"left_to_sweeper",
       {nullptr,
        [](const Event& event, TimePoint) {
          return fmt::format(
              "leaves {}{} to the sweeper{}", on(event), of_job(event), because(event));
        }}},
      {"not_requested", {nullptr, tell_refused}},
      {"given_back",
       {nullptr,
        [](const Event& event, TimePoint) {
          return fmt::format("gives {}{} back to Slurm{}",
                             event.job == 0 ? "" : fmt::format("job {} and ", event.job),
                             on(event),
                             because(event));
        }}},
      {"suspend", {nullptr, fixed("is run by slurmctld to take {} away")}},
      {"resume_failed", {nullptr, fixed("is run by slurmctld: {} not up within ResumeTimeout")}},
      {"queued", {"Google", of_request("has {} in its queue")}},
      {"attempt", {"Google", tell_attempt}},
      {"succeeded", {"Google", of_request("has served {}")}},
      {"failed",
       {"Google",
        [](const Event& event, TimePoint) {
          return fmt::format("has given up on {}: {}", event.request, google_says(event));
        }}},
      {"cancelled", {"Google", of_request("has {} no more: it is cancelled")}},
      {"vm_up", {"Google", tell_vm_up}},
      {"vm_gone", {"Google", tell_vm_gone}},
      {"registered", {"Slurm", fixed("has {} up: slurmd has registered")}},
      {"job_started",
       {"Slurm",
        [](const Event& event, TimePoint) {
          return fmt::format("job {} starts on {}", event.job, on(event));
        }}},
      {"job_ended", {"Slurm", tell_job_ended}},
      {"cancel_request", {nullptr, of_request("cancels {}")}},
      {"delete_request", {nullptr, of_request("deletes {} from Google's list")}},
      {"delete_instances",
       {nullptr,
        [](const Event& event, TimePoint) {
          return fmt::format("deletes {}: {}{}", vms(event.n), event.nodes, because(event));
        }}},
      {"comment",
       {nullptr,
        [](const Event& event, TimePoint) {
          return fmt::format("tells job {}: {}", event.job, more(event, "text"));
        }}},
      {"warn_job",
       {nullptr,
        [](const Event& event, TimePoint) {
          return fmt::format("warns job {}: {}", event.job, more(event, "text"));
        }}},
  };
  return all;
}

/// Actions that have no words of their own: "POWER_DOWN a-[0-3]".
std::string tell_plainly(const Event& event) {
  std::string text = event.what;
  if (event.job != 0) text += fmt::format(" job {}", event.job);
  if (!event.request.empty()) text += " " + event.request;
  if (event.request.empty() && event.nodes.empty() && !event.group.empty())
    text += " " + event.group;
  if (!event.nodes.empty()) text += " " + on(event);
  return text + because(event);
}

/// How it went, where it did not go well.
std::string outcome(const Event& event) {
  const std::string result = more(event, "result");
  if (result.empty() || result == "ok") return {};
  const std::string error = more(event, "error");
  return fmt::format(" [{}{}]",
                     result == "again" ? "not now, looked at again" : "failed",
                     error.empty() ? "" : ": " + error);
}

}  // namespace

StoryLine line_of(const Event& event, TimePoint now) {
  const auto found = tellings().find(event.what);
  StoryLine line{.when = event.when, .who = event.program, .text = {}, .event = event};
  if (found == tellings().end()) {
    line.text = tell_plainly(event);
  } else {
    if (found->second.who != nullptr) line.who = found->second.who;
    line.text = found->second.words(event, now);
  }
  const std::string user = more(event, "user");
  if (!user.empty() && event.why.find("by " + user) == std::string::npos)
    line.text += fmt::format(" (by {})", user);
  if (!event.rule.empty()) line.text += fmt::format(" (rule {})", event.rule);
  line.text = printable(line.text + outcome(event));
  return line;
}

}  // namespace flex
