// SPDX-License-Identifier: GPL-2.0-or-later
// The order in which limits count is that of slurmctld's acct_policy.c: of the job's QOS and its
// partition's the one that has precedence, then the other, then the association and the accounts
// above it. A limit that an earlier one sets is not asked for again.
#include "sweeper/accounting_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

namespace flex {

namespace {

bool is_same(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

/// Whose limits they are, with the words for it.
struct Source {
  const AccountingLimits* limits = nullptr;
  std::string name{};
  bool is_qos = false;
  bool is_own = false;  ///< of the job's own association: the accounts above have Grp limits only
  double tres_factor = 1;
};

using Sources = std::vector<Source>;

void add(std::vector<Obstacle>& found, std::string_view limit, const Source& source) {
  found.push_back({.key = fmt::format("{} of {}", limit, source.name),
                   .why = fmt::format("{} of {} does not allow it", limit, source.name),
                   .is_guess = true});
}

/// Of QOS only the first that sets the limit counts; with one that does, associations do not.
template <class Has, class Breaks>
void check(const Sources& sources,
           std::string_view limit,
           Has&& has,
           Breaks&& breaks,
           std::vector<Obstacle>& found) {
  bool is_set = false;
  for (const Source& source : sources) {
    if (is_set || !has(source)) continue;
    if (breaks(source)) add(found, limit, source);
    is_set = source.is_qos;
  }
}

void check_jobs(const Sources& sources, std::vector<Obstacle>& found) {
  const auto none = [](auto member) {
    return [member](const Source& source) { return source.limits->*member == 0U; };
  };
  const auto is_set = [](auto member) {
    return [member](const Source& source) { return (source.limits->*member).has_value(); };
  };
  check(sources,
        "GrpJobs",
        is_set(&AccountingLimits::group_jobs),
        none(&AccountingLimits::group_jobs),
        found);
  Sources own;
  std::copy_if(sources.begin(), sources.end(), std::back_inserter(own), [](const Source& each) {
    return each.is_qos || each.is_own;
  });
  check(
      own,
      "MaxJobs",
      [](const Source& source) {
        return source.limits->user_jobs.has_value() || source.limits->account_jobs.has_value();
      },
      [](const Source& source) {
        return source.limits->user_jobs == 0U || source.limits->account_jobs == 0U;
      },
      found);
}

void check_wall(const Sources& sources,
                const Job& job,
                double time_factor,
                std::vector<Obstacle>& found) {
  const double seconds = static_cast<double>(least_time(job).count()) * time_factor;
  check(
      sources,
      "MaxWall",
      [](const Source& source) {
        return (source.is_qos || source.is_own) && source.limits->wall.has_value();
      },
      [&](const Source& source) {
        return !job.time_limit || seconds > static_cast<double>(source.limits->wall->count());
      },
      found);
}

/// As much as slurmctld is sure to count: an exclusive job has more than it asked for, and memory
/// that is asked for counts only where it is allocated.
TresCounts needed_tres(const Job& job) {
  const TresCounts asked = parse_tres(job.tres_asked);
  TresCounts needed;
  for (const auto& [name, count] : parse_tres(job.tres_allocated)) {
    const auto found = asked.find(name);
    if (found != asked.end()) needed.emplace(name, std::min(count, found->second));
  }
  return needed;
}

void check_tres(const Sources& sources, const Job& job, std::vector<Obstacle>& found) {
  struct Kind {
    std::string_view limit;
    TresCounts AccountingLimits::*counts;
    bool is_for_accounts;  ///< the accounts above the association count, too
  };

  constexpr Kind kKinds[] = {{"GrpTRES", &AccountingLimits::group_tres, true},
                             {"MaxTRESPerJob", &AccountingLimits::job_tres, false},
                             {"MaxTRESPerUser", &AccountingLimits::user_tres, false},
                             {"MaxTRESPerAccount", &AccountingLimits::account_tres, false}};
  for (const auto& asked : needed_tres(job)) {
    const std::string& name = asked.first;
    const auto count = static_cast<double>(asked.second);
    for (const Kind& kind : kKinds) {
      const auto counts = [&](const Source& source) -> const TresCounts& {
        return source.limits->*kind.counts;
      };
      check(
          sources,
          fmt::format("{}={}", kind.limit, name),
          [&](const Source& source) {
            return (source.is_qos || source.is_own || kind.is_for_accounts) &&
                   counts(source).contains(name);
          },
          [&](const Source& source) {
            const double most = static_cast<double>(counts(source).at(name)) * source.tres_factor;
            return count > most;
          },
          found);
    }
  }
}

/// By its number, or as slurmctld looks for it again when that is gone: one for the job's partition
/// before one for all.
const Association* find_association(const Accounting& accounting, const Job& job) {
  if (const Association* found = accounting.find(job.association);
      job.association != 0 && found != nullptr)
    return found;
  const Association* best = nullptr;
  if (job.user.empty()) return best;
  for (const Association& each : accounting.associations) {
    const bool is_its = is_same(each.user, job.user) && is_same(each.account, job.account);
    if (!is_its) continue;
    if (is_same(each.partition, job.partition)) return &each;
    if (each.partition.empty()) best = &each;
  }
  return best;
}

Sources sources_of(const Accounting& accounting,
                   const Association& association,
                   const Job& job,
                   const std::string& partition_qos) {
  Sources sources;
  const Qos* own = find_qos(accounting, job.qos);
  const Qos* of_partition = partition_qos.empty() ? nullptr : find_qos(accounting, partition_qos);
  std::vector<const Qos*> order{of_partition, own};
  if (own != nullptr && own->overrides_partition) std::swap(order[0], order[1]);
  if (order[0] == order[1]) order.pop_back();
  for (const Qos* qos : order) {
    if (qos != nullptr)
      sources.push_back({.limits = &qos->limits, .name = "QOS " + qos->name, .is_qos = true});
  }
  const double factor = own == nullptr ? 1 : own->limit_factor;
  // A parent that is its own would be no tree: no more steps than there are records.
  const Association* each = &association;
  for (std::size_t i = 0; each != nullptr && i < accounting.associations.size(); ++i) {
    sources.push_back(
        {.limits = &each->limits,
         .name = each->user.empty()
                     ? "account " + each->account
                     : fmt::format("user {} in account {}", each->user, each->account),
         .is_own = each == &association,
         .tres_factor = factor});
    each = each->parent_id == 0 ? nullptr : accounting.find(each->parent_id);
  }
  return sources;
}

void check_qos(const Association& association, const Job& job, std::vector<Obstacle>& found) {
  const bool is_allowed =
      association.qos.empty() ||
      std::any_of(association.qos.begin(), association.qos.end(), [&](const std::string& name) {
        return is_same(name, job.qos);
      });
  // Of a job whose QOS was deleted slurmctld shows none.
  if (job.qos.empty())
    found.push_back({.key = "qos", .why = "its QOS does not exist any more", .is_guess = true});
  else if (!is_allowed)
    found.push_back({.key = "qos",
                     .why = fmt::format("user {} may not use QOS {} any more", job.user, job.qos),
                     .is_guess = true});
}

std::optional<std::uint64_t> to_count(std::string_view text) {
  constexpr std::string_view kUnits = "KMGTP";
  constexpr std::uint64_t kStep = 1024;
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, count);
  if (parsed.ec != std::errc{}) return std::nullopt;
  if (parsed.ptr == end) return count;
  const std::size_t unit = kUnits.find(*parsed.ptr);
  if (parsed.ptr + 1 != end || unit == std::string_view::npos || unit == 0) return std::nullopt;
  // In MiB, which is what Slurm counts memory in.
  for (std::size_t i = 1; i < unit; ++i) count *= kStep;
  return count;
}

}  // namespace

std::vector<Obstacle> accounting_obstacles(const Accounting& accounting,
                                           const Enforcement& enforced,
                                           const Job& job,
                                           const std::string& partition_qos) {
  std::vector<Obstacle> found;
  // A slurmctld that has never reached its slurmdbd has none at all.
  if (!enforced.associations || accounting.associations.empty()) return found;
  const Association* association = find_association(accounting, job);
  if (association == nullptr && job.user.empty()) return found;  // not known by whom
  if (association == nullptr) {
    found.push_back({.key = "association",
                     .why = fmt::format(
                         "user {} does not belong to account {} any more", job.user, job.account),
                     .is_guess = true});
    return found;
  }
  if (enforced.qos) check_qos(*association, job, found);
  if (!enforced.limits) return found;
  const Sources sources = sources_of(accounting, *association, job, partition_qos);
  const Qos* own = find_qos(accounting, job.qos);
  check_jobs(sources, found);
  check_wall(sources, job, own == nullptr ? 1 : own->time_factor, found);
  check_tres(sources, job, found);
  return found;
}

const Qos* find_qos(const Accounting& accounting, std::string_view name) {
  const auto found = std::find_if(accounting.qos.begin(),
                                  accounting.qos.end(),
                                  [&](const Qos& each) { return is_same(each.name, name); });
  return found == accounting.qos.end() ? nullptr : &*found;
}

Seconds least_time(const Job& job) {
  return job.time_min.value_or(job.time_limit.value_or(Seconds{0}));
}

TresCounts parse_tres(std::string_view text) {
  TresCounts counts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = word.rfind('=');
    if (equals == std::string_view::npos) continue;
    if (const auto count = to_count(word.substr(equals + 1)))
      counts.emplace(word.substr(0, equals), *count);
  }
  return counts;
}

}  // namespace flex
