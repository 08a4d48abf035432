// SPDX-License-Identifier: GPL-2.0-or-later
// Which events belong to the story of a job, a node or a request.
#include "ctl/explain/story.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/hostlist.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

namespace flex {

namespace {

using NodeSet = std::unordered_set<NodeName>;

template <std::size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<NodeName> nodes_of(const Event& event) {
  auto nodes = expand_hostlist(event.nodes);
  return nodes ? std::move(*nodes) : std::vector<NodeName>{};
}

bool touches(const Event& event, const NodeSet& nodes) {
  if (event.nodes.empty() || nodes.empty()) return false;
  const std::vector<NodeName> all = nodes_of(event);
  return std::any_of(
      all.begin(), all.end(), [&](const NodeName& node) { return nodes.contains(node); });
}

/// What is somebody's own, and no concern of others on the same nodes.
bool is_of_a_job(const Event& event) {
  constexpr std::array<std::string_view, 6> kJobs{
      "asked", "job_started", "job_ended", "comment", "warn_job", "give_job_back"};
  return is_one_of(event.what, kJobs) || event.what.starts_with("requeue") ||
         event.what == "cancel_job";
}

bool is_of_a_request(const Event& event) {
  constexpr std::array<std::string_view, 9> kRequests{"requested",
                                                      "requested_before",
                                                      "queued",
                                                      "attempt",
                                                      "succeeded",
                                                      "failed",
                                                      "cancelled",
                                                      "cancel_request",
                                                      "delete_request"};
  return is_one_of(event.what, kRequests);
}

bool is_noise(const Event& event) {
  return event.what == "calls" || event.what == "and_more";
}

void add_all(NodeSet& set, const std::vector<NodeName>& nodes) {
  set.insert(nodes.begin(), nodes.end());
}

/// While a job has nodes, what happens to them is part of its story.
class JobEvents {
 public:
  JobEvents(JobId job, const std::vector<Event>& events, const Facts& facts) : job_(job) {
    for (const Event& event : events) {
      if (event.job == job && !event.request.empty()) requests_.insert(event.request);
    }
    for (const SweptGroup& group : facts.shot.groups) {
      for (const ResizeRequest& request : group.requests) {
        if (request_job(request) == job) requests_.insert(request.name.text);
      }
    }
  }

  bool takes(const Event& event) {
    const bool is_mine = event.job == job_;
    if (is_mine && (event.what == "asked" || event.what == "requested" ||
                    event.what == "left_to_sweeper" || event.what == "job_started"))
      add_all(nodes_, nodes_of(event));
    const bool is_its_request = requests_.contains(event.request);
    const bool is_on_its_nodes =
        !is_of_a_job(event) && !is_of_a_request(event) && touches(event, nodes_);
    if (is_mine && event.what == "job_ended") nodes_.clear();
    return is_mine || is_its_request || is_on_its_nodes;
  }

 private:
  JobId job_;
  std::set<std::string> requests_{};
  NodeSet nodes_{};  ///< that it has at this moment
};

/// A request's nodes, from its making until the next request for them.
class RequestEvents {
 public:
  RequestEvents(Subject request, const std::vector<Event>& events, const Facts& facts)
      : request_(std::move(request)) {
    for (const SweptGroup& group : facts.shot.groups) {
      for (const ResizeRequest& one : group.requests) {
        if (request_.is_request(group.group.name.text, one.name.text)) job_ = request_job(one);
      }
    }
    for (const Event& event : events) {
      if (request_.is_request(event.group, event.request) && event.job != 0) job_ = event.job;
    }
  }

  bool takes(const Event& event) {
    if (request_.is_request(event.group, event.request)) {
      if (event.what != "delete_request") add_all(nodes_, nodes_of(event));
      if (event.what == "vm_gone") {
        for (const NodeName& node : nodes_of(event)) nodes_.erase(node);
      }
      return true;
    }
    // The same in another group is no successor.
    if (event.request == request_.name) return false;
    const bool is_next = event.what == "requested";
    if (is_next) {
      for (const NodeName& node : nodes_of(event)) nodes_.erase(node);
      return false;
    }
    if (is_of_a_request(event) || !touches(event, nodes_)) return false;
    return event.job == 0 || event.job == job_;
  }

 private:
  Subject request_;
  JobId job_ = 0;
  NodeSet nodes_{};
};

}  // namespace

std::vector<Event> select_events(const Subject& subject,
                                 const std::vector<Event>& events,
                                 const Facts& facts) {
  std::vector<const Event*> ordered;
  for (const Event& event : events) {
    if (!is_noise(event)) ordered.push_back(&event);
  }
  // Several programs write, and one may have begun before another that was quicker.
  std::stable_sort(ordered.begin(), ordered.end(), [](const Event* left, const Event* right) {
    return left->when < right->when;
  });
  std::vector<Event> chosen;
  const auto choose = [&](auto&& takes) {
    for (const Event* event : ordered) {
      if (takes(*event)) chosen.push_back(*event);
    }
  };
  if (subject.kind == Subject::Kind::Job) {
    JobEvents job{subject.job, events, facts};
    choose([&](const Event& event) { return job.takes(event); });
  } else if (subject.kind == Subject::Kind::Request) {
    RequestEvents request{subject, events, facts};
    choose([&](const Event& event) { return request.takes(event); });
  } else {
    const NodeSet node{{subject.name}};
    choose([&](const Event& event) { return touches(event, node); });
  }
  return chosen;
}

}  // namespace flex
