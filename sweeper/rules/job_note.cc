// SPDX-License-Identifier: GPL-2.0-or-later
// job_note: what a job's author sees in AdminComment. While it waits: since when, which attempt,
// Google's reason and estimate. When its VMs are there: when they end, and whether that is before
// the job does: also after its TimeLimit was raised.
#include "lib/core/job_note.h"

#include "lib/fleet/groups.h"
#include "sweeper/lease.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace flex {

namespace {

/// At most so many in one round.
constexpr std::size_t kMostNotes = 100;

struct JobView {
  const ResizeRequest* request = nullptr;  ///< the oldest that it waits for
  const Instance* alone = nullptr;         ///< without a request: one of those that it waits for
  /// Made for longer than the one before: a time limit was raised, or a longer job has joined.
  const ResizeRequest* longer = nullptr;
  NodeName of_request{};  ///< one that waits
  std::size_t waiting_nodes = 0;
  std::size_t vms = 0;
  std::size_t ours = 0;
  std::optional<std::size_t> nodeset{};
};

JobView view_of(const Round& round, const Job& job) {
  JobView view;
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = round.picture.find(name);
    if (node == nullptr) continue;
    ++view.ours;
    view.nodeset = node->nodeset;
    if (node->has_vm()) {
      ++view.vms;
    } else if (node->request) {
      ++view.waiting_nodes;
      view.of_request = name;
      if (view.request == nullptr || node->request->created < view.request->created)
        view.request = node->request.item;
      for (const Placed<ResizeRequest>& request : node->requests) {
        if (request->description.find(" shorter=") != std::string::npos) view.longer = request.item;
      }
    } else if (node->is_queued_alone()) {
      ++view.waiting_nodes;
      view.alone = node->alone.back().item;
    }
  }
  return view;
}

std::string waiting_text(const Round& round, const Job& job, const JobView& view) {
  WaitingNote note{.vms = view.waiting_nodes,
                   .region = round.config.region,
                   .since = waits_since(round, &job, round.shot.now),
                   .attempt = 1,
                   .now = round.shot.now};
  const ProviderError* reason = nullptr;
  if (view.request != nullptr) {
    note.since = view.request->created;
    note.attempt = request_attempt(*view.request);
    if (view.request->last_attempt) reason = &*view.request->last_attempt;
  } else if (view.alone->last_error) {
    reason = &*view.alone->last_error;
  }
  if (reason != nullptr) {
    note.estimate = reason->estimated_availability;
    note.reason_code = reason->code;
    note.reason = reason->message;
  }
  const NodesetConfig& nodeset = round.config.nodesets[*view.nodeset];
  const Patience patience = patience_of(nodeset, job);
  if (patience.limit > Seconds{0}) {
    const TimePoint began =
        view.request == nullptr ? note.since : began_to_wait(*view.request, job);
    note.gives_up = began + patience.limit;
  }
  std::string text = note_waiting(note);
  const NodePicture* const first = round.picture.find(view.of_request);
  if (const ShutWay* const failed = first == nullptr ? nullptr : failed_way(round, *first))
    text += "; " + note_other_failed(failed->why,
                                     failed->next == kNotThisWait
                                         ? std::nullopt
                                         : std::optional<TimePoint>{failed->next});
  const RunDuration run = run_duration(nodeset, &job, nodeset.mode);
  if (const std::string shortfall = shortfall_note(run, job.time_limit); !shortfall.empty())
    text += "; " + shortfall;
  if (const auto longer = round.longer_notes.find(job.id); longer != round.longer_notes.end())
    text += "; " + longer->second;
  else if (view.longer != nullptr)
    text += "; " + note_lengthened(request_way(*view.longer).shorter, view.longer->run_duration);
  if (const JobWish wish = wish_of(job); !wish.problems.empty())
    text += "; " + note_ignored(wish.problems);
  return text;
}

/// Empty: nothing is known, or lease_warning has the word.
std::string running_text(const Round& round, const Job& job) {
  const auto lease = lease_of(round.picture, job);
  if (!lease || is_warning_due(round, job, *lease)) return {};
  // Also before it begins: its time limit was raised while its VMs boot, or they are another's.
  const auto overrun =
      job.is_configuring ? overrun_to_come(job, *lease, round.shot.now) : overrun_of(job, *lease);
  return overrun ? note_overrun(*overrun) : note_running(lease->ends);
}

/// Empty: nothing to say.
std::string text_for(const Round& round, const Job& job, const JobView& view) {
  if (view.request != nullptr || view.alone != nullptr) return waiting_text(round, job, view);
  if (view.vms == view.ours) return running_text(round, job);
  if (const auto turn = round.turn_notes.find(job.id); turn != round.turn_notes.end())
    return turn->second;
  for (const NodeName& name : job.nodes) {
    const auto retry = round.memory.retries.find(name);
    if (retry == round.memory.retries.end() || retry->second.next <= round.shot.now) continue;
    const RetryState& state = retry->second;
    return state.attempts > 0 ? note_next_attempt(state.attempts, state.next, state.why)
                              : note_refused_for_now(state.next, state.why);
  }
  return {};
}

/// What a job is to be told, and since when it has waited for a word: never told, or that its VMs
/// have come, is longest.
struct DueNote {
  TimePoint last{};
  const Job* job = nullptr;
  std::string text{};
};

std::optional<DueNote> due_note(const Round& round, const Job& job) {
  // Another rule may just have said what there is to say.
  if (!job.holds_nodes() || round.is_told(job.id)) return std::nullopt;
  const JobView view = view_of(round, job);
  if (view.ours == 0) return std::nullopt;
  DueNote due{.job = &job, .text = text_for(round, job, view)};
  if (due.text.empty() || with_note(job.admin_comment, due.text) == job.admin_comment)
    return std::nullopt;
  const auto told = round.memory.notes.find(job.id);
  const bool have_vms_come = view.vms == view.ours && !says_running(job.admin_comment);
  // What costs the job its work is told at once.
  const bool is_bad_news =
      says_overrun(with_note({}, due.text)) && !says_overrun(job.admin_comment);
  if (told == round.memory.notes.end() || have_vms_come || is_bad_news) return due;
  due.last = told->second;
  // So that slurmctld is not flooded.
  if (round.shot.now - due.last < round.config.sweeper.note_interval) return std::nullopt;
  return due;
}

}  // namespace

void job_note(Round& round) {
  std::vector<DueNote> notes;
  for (const Job& job : round.shot.jobs.items) {
    if (auto due = due_note(round, job)) notes.push_back(std::move(*due));
  }
  std::stable_sort(notes.begin(), notes.end(), [](const DueNote& left, const DueNote& right) {
    return left.last < right.last;
  });
  if (notes.size() > kMostNotes) notes.resize(kMostNotes);
  for (const DueNote& note : notes)
    tell(round, Rule::JobNote, "how it stands", *note.job, note.text);
}

}  // namespace flex
