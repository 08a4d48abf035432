// SPDX-License-Identifier: GPL-2.0-or-later
// resubmit: a request that has waited for longer than resubmit_after is renewed: Google sometimes
// serves a new one at once. So is one whose VMs would end before a job on its nodes does: its time
// limit was raised, or a longer job has joined. The old one keeps its place until the new one is in
// the queue (surplus_request).
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flex {

namespace {

bool is_followed(const NodePicture& node, const ResizeRequest& request) {
  const RequestWay way = request_way(request);
  return std::any_of(
      node.requests.begin(), node.requests.end(), [&](const Placed<ResizeRequest>& other) {
        return is_our_request(*other) && request_way(*other).follows(way);
      });
}

/// All of them, and no other rule has taken one of them up.
bool are_waiting(const Round& round, const std::vector<NodeName>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeName& name) {
    const NodePicture* node = round.picture.find(name);
    return node != nullptr && node->is_awaited() && !round.is_stopped(*node) &&
           round.is_free(name) && !round.is_queued(name);
  });
}

/// Why it is made anew; empty: it is not.
std::string why_renew(const Round& round, const NodePicture& node, const ResizeRequest& request) {
  const Judgement judgement = judge(round.config, PictureFacts{round.picture}, request);
  if (judgement.fit == Fit::TooShort) return judgement.why;
  const Seconds limit = round.nodeset_of(node).resubmit_after;
  if (limit == Seconds{0} || request.created == TimePoint{} ||
      round.shot.now - request.created < limit)
    return {};
  return fmt::format("its request has waited for more than resubmit_after {}",
                     format_slurm_time(limit));
}

/// The authors of all jobs on its nodes are told at once. job_note repeats it for as long as they
/// wait. Whether it is too short.
bool tell_longer(Round& round, const ResizeRequest& request, const std::string& why) {
  const Seconds need = needed_run(round.config, PictureFacts{round.picture}, request.nodes);
  if (request.run_duration == Seconds{0} || need <= request.run_duration) return false;
  const bool is_new = round.see(Rule::Resubmit, key_of(request) + " longer").count == 1;
  const std::string note = note_longer(request.run_duration, need);
  for (const Job* job : jobs_on(round.picture, request.nodes)) {
    if (is_new && !round.is_told(job->id)) tell(round, Rule::Resubmit, why, *job, note);
    round.longer_notes[job->id] = note;
  }
  return true;
}

}  // namespace

void resubmit(Round& round) {
  for (const Placed<ResizeRequest>& request : queued_requests(round)) {
    if (!are_waiting(round, request->nodes)) continue;
    const NodePicture& node = *round.picture.find(request->nodes.front());
    if (is_followed(node, *request) || !is_due(round, node)) continue;
    const std::string why = why_renew(round, node, *request);
    if (why.empty()) continue;
    const bool is_short = tell_longer(round, *request, why);
    const RequestWay way = request_way(*request);
    Turn turn = make_turn(round, Rule::Resubmit, why, request->nodes, request->created);
    turn.options = {.attempt = way.attempt + 1,
                    .step = way.step,
                    .renewed = way.renewed + 1,
                    .failures = way.failures,
                    .is_second = true,
                    .shorter = is_short ? request->run_duration : way.shorter};
    // For the job that it was made for, where that is there: for all nodes as they are together.
    if (const Job* job = round.picture.find_job(request_job(*request));
        job != nullptr && job->holds_nodes())
      turn.job = job->id;
    // A second request for the same nodes must not be in the way of one that has none.
    turn.is_extra = true;
    if (is_shut_out(round, turn)) continue;
    round.enqueue(std::move(turn));
  }
}

}  // namespace flex
