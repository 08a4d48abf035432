// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/explain/remains.h"

#include "ctl/terminal.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace flex {

namespace {

bool is_live(const Instance& instance) {
  return !instance.is_dead() && !instance.is_leaving() && !instance.is_queued();
}

std::string count_vms(const std::string& in, const std::set<NodeName>& nodes, const Facts& facts) {
  std::size_t there = 0;
  std::optional<TimePoint> first;
  for (const SweptGroup& group : facts.shot.groups) {
    if (group.group.name.text != in) continue;
    for (const Instance& instance : group.instances) {
      if (!is_live(instance) || !nodes.contains(instance.name)) continue;
      ++there;
      if (instance.terminates && (!first || *instance.terminates < *first))
        first = instance.terminates;
    }
  }
  if (there == 0) return " None of its VMs is there any more.";
  return fmt::format(" {} of its VMs {} there{}.",
                     there,
                     there == 1 ? "is" : "are",
                     first ? fmt::format(", to end at {}", soon_text(*first, facts.shot.now)) : "");
}

}  // namespace

std::string soon_text(TimePoint time, TimePoint now) {
  if (time <= now) return clock_text(time, now) + " (due now)";
  return fmt::format("{} (in {})", clock_text(time, now), span_text(time - now));
}

std::string how_it_ended(const Subject& request, const std::vector<Event>& events, TimePoint now) {
  std::string ended = ": requests that are over are deleted after a while";
  for (const Event& event : events) {
    if (!request.is_request(event.group, event.request)) continue;
    const std::string when = clock_text(event.when, now);
    const auto code = event.more.find("code");
    if (event.what == "failed")
      ended = fmt::format(": it had failed at {}{}",
                          when,
                          code == event.more.end() ? "" : fmt::format(" ({})", code->second));
    if (event.what == "cancelled") ended = fmt::format(": it was cancelled at {}", when);
    if (event.what == "succeeded") ended = fmt::format(": it was served at {}", when);
  }
  return ended;
}

std::string vms_left(const Subject& request, const std::vector<Event>& events, const Facts& facts) {
  std::set<NodeName> nodes;
  std::string in;
  for (const SweptGroup& group : facts.shot.groups) {
    for (const ResizeRequest& one : group.requests) {
      if (!request.is_request(group.group.name.text, one.name.text)) continue;
      in = group.group.name.text;
      nodes.insert(one.nodes.begin(), one.nodes.end());
    }
  }
  for (const Event& event : events) {
    if (!request.is_request(event.group, event.request)) continue;
    if (event.what != "vm_up" && event.what != "vm_gone") continue;
    in = event.group;
    const auto some = expand_hostlist(event.nodes);
    if (!some) continue;
    for (const NodeName& node : *some) {
      if (event.what == "vm_up")
        nodes.insert(node);
      else
        nodes.erase(node);
    }
  }
  return nodes.empty() ? std::string{} : count_vms(in, nodes, facts);
}

}  // namespace flex
