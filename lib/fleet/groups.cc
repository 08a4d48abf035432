// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/groups.h"

#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/fleet/routes.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace flex {

namespace {

/// Google allows 2,048 characters in descriptions; stay clear of it.
constexpr std::size_t kMaxDescription = 1800;
constexpr std::string_view kMark = "slurm-flex-start ";

/// The value of "key=" up to the next space.
std::string_view value_of(std::string_view description, std::string_view key) {
  const std::size_t at = description.find(key);
  if (at == std::string_view::npos || (at > 0 && description[at - 1] != ' ')) return {};
  const std::string_view rest = description.substr(at + key.size());
  return rest.substr(0, rest.find(' '));
}

/// 0 if it is no number.
std::uint32_t parse_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc{} && end == text.data() + text.size() ? number : 0;
}

}  // namespace

MigName group_of_node(const std::string& cluster,
                      const NodesetConfig& nodeset,
                      std::size_t index,
                      std::string_view variant) {
  return nodeset_group_name(cluster, nodeset.name, index / group_capacity(nodeset), variant);
}

std::string request_description(JobId job,
                                const std::vector<NodeName>& nodes,
                                const RequestWay& way) {
  std::string text = fmt::format("{}job={}", kMark, job);
  if (way.attempt > 1 || way.failures > 0)
    text += fmt::format(" attempt={} failures={}", way.attempt, way.failures);
  if (way.step > 0) text += fmt::format(" step={}", way.step);
  if (way.renewed > 0) text += fmt::format(" renewed={}", way.renewed);
  if (way.is_race) text += " race=1";
  if (way.shorter > Seconds{0}) text += fmt::format(" shorter={}", way.shorter.count());
  const std::string folded = fold_hostlist(nodes);
  if (text.size() + folded.size() + 7 <= kMaxDescription) text += fmt::format(" nodes={}", folded);
  return text;
}

bool is_our_request(const ResizeRequest& request) {
  return request.description.starts_with(kMark);
}

RequestWay request_way(const ResizeRequest& request) {
  if (!is_our_request(request)) return {};
  const auto number = [&](std::string_view key) {
    return parse_number(value_of(request.description, key));
  };
  RequestWay way{.attempt = std::max(1U, number("attempt=")),
                 .step = number("step="),
                 .renewed = number("renewed="),
                 .failures = number("failures="),
                 .is_race = number("race=") == 1,
                 .shorter = Seconds{number("shorter=")}};
  if (value_of(request.description, "failures=").empty())
    way.failures = way.attempt - 1 - std::min(way.attempt - 1, way.renewed);
  return way;
}

std::uint32_t request_attempt(const ResizeRequest& request) {
  return request_way(request).attempt;
}

JobId request_job(const ResizeRequest& request) {
  if (is_our_request(request)) return parse_number(value_of(request.description, "job="));
  const std::string_view name = request.name.text;
  const std::size_t dash = name.find('-');
  if (name.empty() || name.front() != 'j' || dash == std::string_view::npos) return 0;
  return parse_number(name.substr(1, dash - 1));
}

std::vector<NodeName> described_nodes(std::string_view description) {
  if (description.substr(0, kMark.size()) != kMark) return {};
  auto nodes = expand_hostlist(value_of(description, "nodes="));
  return nodes ? std::move(*nodes) : std::vector<NodeName>{};
}

void fill_nodes(std::vector<ResizeRequest>& requests) {
  for (ResizeRequest& request : requests) {
    if (request.nodes.empty()) request.nodes = described_nodes(request.description);
  }
}

RunDuration run_duration(const NodesetConfig& nodeset,
                         const std::optional<Seconds>& time_limit,
                         Mode mode) {
  const Seconds longest = nodeset.dws_flex.max_run_duration;
  if (!time_limit || !nodeset.dws_flex.use_job_duration) return {.run = longest};
  const Seconds wanted = *time_limit + nodeset.run_duration_margin;
  const bool is_capped = wanted > longest;
  if (mode == Mode::Individual) return {.run = longest, .is_capped = is_capped};
  const Seconds shortest = mode == Mode::BulkInsert ? kMinBulkDuration : kMinRunDuration;
  return {.run = std::min(std::max(wanted, shortest), longest), .is_capped = is_capped};
}

RunDuration run_duration(const NodesetConfig& nodeset, const Job* job, Mode mode) {
  if (job == nullptr) return run_duration(nodeset, std::nullopt, mode);
  const auto wish = wish_of(*job).run;
  if (!wish) return run_duration(nodeset, job->time_limit, mode);
  const Seconds longest = nodeset.dws_flex.max_run_duration;
  const bool is_free = nodeset.dws_flex.use_job_duration && mode != Mode::Individual;
  RunDuration duration{.run = is_free ? std::min(*wish, longest) : longest};
  if (duration.run != *wish) duration.unmet_wish = wish;
  return duration;
}

std::string run_duration_text(const NodesetConfig& nodeset, const Job* job, Mode mode) {
  const Seconds longest = nodeset.dws_flex.max_run_duration;
  const std::string most = fmt::format("max_run_duration {}", format_slurm_time(longest));
  if (job == nullptr) return most + ", as no job asks";
  if (!nodeset.dws_flex.use_job_duration) return most + ", as use_job_duration is false";
  if (mode == Mode::Individual) return most + ", as VMs that come one by one live so long";
  if (const auto wish = wish_of(*job).run)
    return fmt::format("the job's own run={}{}",
                       format_slurm_time(*wish),
                       *wish > longest ? ", cut to " + most : "");
  if (!job->time_limit) return most + ", as the job has no TimeLimit";
  const Seconds wanted = *job->time_limit + nodeset.run_duration_margin;
  const Seconds run = run_duration(nodeset, job, mode).run;
  return fmt::format("TimeLimit {} + run_duration_margin {}{}",
                     format_slurm_time(*job->time_limit),
                     format_slurm_time(nodeset.run_duration_margin),
                     run < wanted   ? ", cut to " + most
                     : run > wanted ? ", raised to Google's least"
                                    : "");
}

std::string shortfall_note(const RunDuration& duration, const std::optional<Seconds>& time_limit) {
  if (duration.unmet_wish) return note_unmet_wish(*duration.unmet_wish, duration.run);
  if (duration.is_capped && time_limit) return note_capped(*time_limit, duration.run);
  return {};
}

}  // namespace flex
