// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/cloud_look.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/fleet/view.h"
#include "sweeper/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace flex {

namespace {

void tell(const Progress& progress, const std::string& doing) {
  if (progress) progress(doing);
}

/// One group, while it is being read.
struct Work {
  SweptGroup group{};
  Reading reading{};
  bool is_known = false;  ///< it was there the last time
  int not_found = 0;      ///< so many of its lists
  std::optional<Error> error{};

  [[nodiscard]] bool has_vanished() const { return not_found == 2; }
};

/// Reads the lists of a group. A group that is gone since it was listed is simply not there, if
/// both of its lists say so.
class GroupReader {
 public:
  GroupReader(Cloud& cloud, std::function<void()> on_list)
      : cloud_(cloud), on_list_(std::move(on_list)) {}

  void read(Work& work, const Reading& reading) {
    if (reading.requests) read_requests(work);
    if (reading.instances) read_instances(work);
  }

 private:
  void read_requests(Work& work) {
    work.reading.requests = true;
    cloud_.fetch_requests(work.group.group.name,
                          [this, &work](Result<std::vector<ResizeRequest>> got) {
                            if (!got) {
                              fail(work, "listing its requests", std::move(got).error());
                              // Whether it is gone, its other list says.
                              if (work.not_found > 0 && !work.reading.instances)
                                read_instances(work);
                              return;
                            }
                            fill_nodes(*got);
                            const bool is_news = have_changed(work.group.requests, *got);
                            work.group.requests = std::move(*got);
                            on_list_();
                            if (is_news && !work.reading.instances) read_instances(work);
                          });
  }

  void read_instances(Work& work) {
    work.reading.instances = true;
    cloud_.fetch_instances(work.group.group.name, [this, &work](Result<std::vector<Instance>> got) {
      if (!got) return fail(work, "listing its VMs", std::move(got).error());
      work.group.instances = std::move(*got);
      on_list_();
    });
  }

  static void fail(Work& work, std::string_view doing, Error error) {
    if (error.kind == ErrorKind::NotFound)
      ++work.not_found;
    else if (!work.error)
      work.error = std::move(error).in(fmt::format("group {}: {}", work.group.group.name, doing));
  }

  Cloud& cloud_;
  std::function<void()> on_list_;
};

/// What is wrong with what was read, if anything.
std::optional<Error> error_of(const Work& work) {
  if (work.error) return work.error;
  if (work.not_found == 1)
    return Error{ErrorKind::Retry,
                 fmt::format("group {} shows only one of its lists", work.group.group.name)};
  return std::nullopt;
}

/// Notes what was read of a group.
void settle(Work& work, TimePoint now) {
  const bool is_individual = work.group.group.kind == GroupKind::Individual;
  const bool is_whole = work.reading.instances && (work.reading.requests || is_individual);
  work.group.is_kept = !is_whole;
  if (error_of(work)) {
    work.group.readings_due = 1;
  } else if (is_whole) {
    work.group.read = now;
    work.group.readings_due = std::max(0, work.group.readings_due - 1);
  }
}

std::vector<Policy> our_policies(std::vector<Policy> found, const std::string& cluster) {
  std::erase_if(found, [&](const Policy& policy) {
    const auto nodeset = owned_nodeset(policy.description, cluster);
    return !nodeset || !policy.name.starts_with(group_name_prefix(cluster, *nodeset));
  });
  return found;
}

class CloudLook {
 public:
  CloudLook(Cloud& cloud, const Config& config, Snapshot& shot, const Progress& progress)
      : cloud_(cloud), config_(config), shot_(shot), progress_(progress), reader_(cloud, [this] {
          count_list();
        }) {
    for (const NodesetConfig& set : config.nodesets) {
      if (may_use_bulk(set)) loose_nodesets_.insert(set.name);
    }
    bulk_nodesets_ = loose_nodesets_;
    loose_nodesets_.insert(shot.may_have_loose.begin(), shot.may_have_loose.end());
    for (const SweptGroup& group : shot.groups) {
      if (group.group.kind == GroupKind::Loose && !group.instances.empty())
        loose_nodesets_.insert(group.nodeset);
    }
  }

  Result<Done> run() {
    shot_.unseen.clear();
    tell(progress_, "the list of groups at Compute Engine");
    cloud_.fetch_groups(cluster_name_prefix(shot_.cluster), [this](Result<std::vector<Group>> got) {
      if (!got)
        error_ = std::move(got).error().in("listing the groups");
      else
        read(*std::move(got));
    });
    if (!loose_nodesets_.empty()) look_at_loose();
    if (needs_policies()) look_at_policies();
    cloud_.run();
    if (error_) return *std::move(error_);
    read_what_differs();
    return finish();
  }

 private:
  // ---- groups ----

  void read(std::vector<Group> found) {
    std::map<MigName, const SweptGroup*> last;
    for (const SweptGroup& group : shot_.groups) last.emplace(group.group.name, &group);
    std::size_t calls = 0;
    for (Group& group : found) {
      auto nodeset = owned_nodeset(group.description, shot_.cluster);
      // Both must be right: the mark in the description, and the name that goes with it.
      if (!nodeset || !group.name.text.starts_with(group_name_prefix(shot_.cluster, *nodeset))) {
        foreign_.push_back(std::move(group));
        continue;
      }
      const auto known = last.find(group.name);
      Work& work = add(known == last.end() ? nullptr : known->second, std::move(group));
      work.group.nodeset = *std::move(nodeset);
      calls += static_cast<std::size_t>(work.reading.requests) +
               static_cast<std::size_t>(work.reading.instances);
    }
    choose_spare(calls);
    // Chosen above; from here on it says what has been asked for.
    for (Work& work : works_) reader_.read(work, std::exchange(work.reading, {}));
    watch_vms();
  }

  Work& add(const SweptGroup* last, Group now) {
    Work& work = works_.emplace_back();
    work.reading = what_to_read(last, now);
    work.is_known = last != nullptr;
    const bool is_news = last == nullptr || !is_unchanged(last->group, now);
    // Another group of the same name has nothing of the last one's.
    if (last != nullptr && last->group.id == now.id && last->group.created == now.created)
      work.group = *last;
    if (is_news) work.group.readings_due = 2;
    work.group.group = std::move(now);
    return work;
  }

  /// Of the rest those that were read longest ago.
  void choose_spare(std::size_t calls) {
    std::vector<Work*> rest;
    for (Work& work : works_) {
      if (!work.reading.instances) rest.push_back(&work);
    }
    const std::size_t count = std::min(rest.size(), spare_readings(works_.size(), calls));
    const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(rest.begin(), middle, rest.end(), [](const Work* left, const Work* right) {
      return left->group.read < right->group.read;
    });
    std::for_each(rest.begin(), middle, [](Work* work) {
      work->reading = {.requests = true, .instances = true};
    });
  }

  /// The VMs of groups that are not read: one list a zone shows whether they are as they were.
  void watch_vms() {
    std::map<std::string, std::set<std::string>> names;
    for (const Work& work : works_) {
      if (work.reading.instances) continue;
      for (const std::string& zone : zones_of(work.group)) {
        for (const Instance& entry : work.group.instances) names[zone].insert(entry.name.text);
      }
    }
    for (const auto& [zone, wanted] : names) {
      cloud_.fetch_vms({.zone = zone, .name_pattern = pattern_of(wanted)},
                       [this, zone = zone](Result<std::vector<ZoneVm>> got) {
                         if (!got) return;
                         watched_.insert(zone);
                         for (ZoneVm& vm : *got) vms_[vm_key(vm.vm)] = std::move(vm.vm);
                       });
    }
  }

  /// One refused list of a zone must not make this round read all groups that have VMs there: of
  /// those only some are read, longest ago first. The others are as they were seen last, which
  /// nothing is done by without another look (kept_groups).
  void read_what_differs() {
    constexpr std::size_t kMostUnwatched = 20;
    std::vector<Work*> differing;
    std::vector<Work*> unwatched;
    for (Work& work : works_) {
      if (work.reading.instances) continue;
      const std::set<std::string> zones = zones_of(work.group);
      const bool is_watched = std::all_of(
          zones.begin(), zones.end(), [this](const auto& zone) { return watched_.contains(zone); });
      if (!is_watched)
        unwatched.push_back(&work);
      else if (!shows_same(work.group, vms_))
        differing.push_back(&work);
    }
    std::stable_sort(unwatched.begin(), unwatched.end(), [](const Work* left, const Work* right) {
      return left->group.read < right->group.read;
    });
    unwatched.resize(std::min(unwatched.size(), kMostUnwatched));
    differing.insert(differing.end(), unwatched.begin(), unwatched.end());
    for (Work* const work : differing)
      reader_.read(*work, {.requests = !work->reading.requests, .instances = true});
    if (!differing.empty()) cloud_.run();
  }

  void count_list() {
    constexpr std::size_t kListsOfGroup = 2;
    if (++lists_ % kListsOfGroup == 0)
      tell(
          progress_,
          fmt::format("groups at Compute Engine: {} of {}", lists_ / kListsOfGroup, works_.size()));
  }

  // ---- what only some nodesets need ----

  /// First the operations: one that ends in between has its VMs in the list that is taken after.
  void look_at_loose() {
    cloud_.fetch_bulk_operations([this](const Result<std::vector<Operation>>& got) {
      if (!got) {
        loose_error_ = got.error().in("listing bulkInsert operations");
        return;
      }
      is_bulk_under_way_ = !got->empty();
      cloud_.fetch_loose_instances(shot_.cluster, {}, [this](Result<std::vector<Instance>> vms) {
        if (vms)
          loose_ = *std::move(vms);
        else
          loose_error_ = vms.error().in("listing the VMs that are in no group");
      });
    });
  }

  [[nodiscard]] bool needs_policies() const {
    const auto has_placement = [](const NodesetConfig& set) { return set.placement.is_wanted(); };
    return shot_.may_have_policies || !shot_.policies.empty() ||
           std::any_of(config_.nodesets.begin(), config_.nodesets.end(), has_placement);
  }

  /// Only what is left over goes by them: without the list nothing is.
  void look_at_policies() {
    cloud_.fetch_policies(cluster_name_prefix(shot_.cluster),
                          [this](Result<std::vector<Policy>> got) {
                            if (got) policies_ = our_policies(*std::move(got), shot_.cluster);
                          });
  }

  // ---- what was seen ----

  Result<Done> finish() {
    std::vector<SweptGroup> groups;
    std::vector<SweptGroup> last_loose;
    for (SweptGroup& group : shot_.groups) {
      if (group.group.kind == GroupKind::Loose) last_loose.push_back(std::move(group));
    }
    for (Work& work : works_) {
      settle(work, shot_.now);
      if (const auto error = error_of(work)) shot_.unseen.emplace(work.group.nodeset, *error);
      if (!work.has_vanished()) groups.push_back(std::move(work.group));
    }
    shot_.groups = std::move(groups);
    add_loose(std::move(last_loose));
    shot_.foreign_groups = std::move(foreign_);
    shot_.policies = std::move(policies_);
    shot_.is_bulk_under_way = is_bulk_under_way_;
    for (const NodesetConfig& set : config_.nodesets) {
      if (!shot_.unseen.contains(set.name)) shot_.seen_once.insert(set.name);
    }
    const bool is_any_seen = std::any_of(
        config_.nodesets.begin(), config_.nodesets.end(), [this](const NodesetConfig& set) {
          return !shot_.unseen.contains(set.name);
        });
    if (is_any_seen || shot_.unseen.empty()) return Done{};
    return shot_.unseen.begin()->second;
  }

  /// A nodeset that may have such VMs has its group even if there are none: it was looked at.
  void add_loose(std::vector<SweptGroup> last) {
    if (loose_nodesets_.empty()) return;
    if (loose_error_) {
      for (const std::string& nodeset : loose_nodesets_)
        shot_.unseen.emplace(nodeset, *loose_error_);
      for (SweptGroup& group : last) shot_.groups.push_back(std::move(group));
      return;
    }
    auto sorted = by_nodeset(std::move(loose_), shot_.cluster);
    for (const std::string& nodeset : bulk_nodesets_) sorted.try_emplace(nodeset);
    for (auto& [nodeset, vms] : sorted) {
      shot_.groups.push_back({.group = loose_group(shot_.cluster, nodeset),
                              .nodeset = nodeset,
                              .requests = {},
                              .instances = std::move(vms)});
    }
  }

  Cloud& cloud_;
  const Config& config_;
  Snapshot& shot_;
  const Progress& progress_;
  GroupReader reader_;
  std::size_t lists_ = 0;     ///< that have come
  std::deque<Work> works_{};  ///< stays where it is while answers come
  std::vector<Group> foreign_{};
  std::set<std::string> watched_{};  ///< zones
  VmsByKey vms_{};
  std::set<std::string> bulk_nodesets_{};
  std::set<std::string> loose_nodesets_{};  ///< that may have VMs in no group
  std::vector<Instance> loose_{};
  std::optional<Error> loose_error_{};
  bool is_bulk_under_way_ = false;
  std::vector<Policy> policies_{};
  std::optional<Error> error_{};
};

}  // namespace

Result<Done> look_at_cloud(Cloud& cloud,
                           const Config& config,
                           Snapshot& shot,
                           const Progress& progress) {
  return CloudLook{cloud, config, shot, progress}.run();
}

void read_groups(Cloud& cloud, Snapshot& shot, const std::set<MigName>& names) {
  std::deque<Work> works;
  std::deque<SweptGroup*> places;
  GroupReader reader{cloud, [] {}};
  for (SweptGroup& group : shot.groups) {
    if (!names.contains(group.group.name)) continue;
    places.push_back(&group);
    Work& work = works.emplace_back();
    work.group = group;
    reader.read(work, {.requests = true, .instances = true});
  }
  cloud.run();
  std::set<MigName> gone;
  for (std::size_t i = 0; i < works.size(); ++i) {
    Work& work = works[i];
    settle(work, shot.now);
    if (const auto error = error_of(work)) shot.unseen.emplace(work.group.nodeset, *error);
    if (work.has_vanished()) gone.insert(work.group.group.name);
    *places[i] = std::move(work.group);
  }
  std::erase_if(shot.groups,
                [&](const SweptGroup& group) { return gone.contains(group.group.name); });
}

Remains look_for_remains(Cloud& cloud, const std::string& cluster) {
  Remains found;
  const auto note = [&](const auto& got) {
    // What the role does not allow will not be allowed the next time either.
    if (!got && got.error().kind != ErrorKind::Denied) found.is_whole = false;
    return got.has_value();
  };
  cloud.fetch_loose_instances(cluster, {}, [&](Result<std::vector<Instance>> vms) {
    if (!note(vms)) return;
    for (const auto& [nodeset, each] : by_nodeset(*std::move(vms), cluster))
      found.loose.insert(nodeset);
  });
  cloud.fetch_policies(cluster_name_prefix(cluster), [&](Result<std::vector<Policy>> got) {
    if (note(got)) found.has_policies = !our_policies(*std::move(got), cluster).empty();
  });
  cloud.run();
  return found;
}

}  // namespace flex
