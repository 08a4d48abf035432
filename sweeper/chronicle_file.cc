// SPDX-License-Identifier: GPL-2.0-or-later
// chronicle.json: what the chronicle knew when it was last kept.
#include "sweeper/chronicle.h"

#include <nlohmann/json.hpp>

namespace flex {

namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
/// Nobody's clock is further from ours: times are added to and subtracted from.
constexpr std::int64_t kLastTime = 253402300799;  // the year 9999

std::int64_t to_number(TimePoint time) {
  return time.time_since_epoch().count();
}

/// Throws for what is no time; the caller catches.
TimePoint to_time(const Json& value) {
  const auto seconds = value.get<std::int64_t>();
  if (seconds < 0 || seconds > kLastTime) throw std::out_of_range("no time");
  return TimePoint{Seconds{seconds}};
}

Json to_json(const SeenRequest& seen) {
  return {{"id", seen.id},
          {"state", static_cast<int>(seen.state)},
          {"job", seen.job},
          {"code", seen.code},
          {"message", seen.message},
          {"estimate", seen.estimate ? to_number(*seen.estimate) : 0},
          {"told", to_number(seen.told)},
          {"nodes", seen.nodes},
          {"n", seen.n}};
}

SeenRequest to_request(const Json& value) {
  const auto state = value.at("state").get<int>();
  if (state < 0 || state > static_cast<int>(RequestState::Unknown))
    throw std::out_of_range("no state");
  SeenRequest seen{.id = value.value("id", ""),  // older versions did not write it
                   .state = static_cast<RequestState>(state),
                   .job = value.at("job").get<JobId>(),
                   .code = value.at("code").get<std::string>(),
                   .message = value.at("message").get<std::string>(),
                   .estimate = {},
                   .told = to_time(value.at("told")),
                   .nodes = value.at("nodes").get<std::string>(),
                   .n = value.at("n").get<std::size_t>()};
  const TimePoint estimate = to_time(value.at("estimate"));
  if (estimate != TimePoint{}) seen.estimate = estimate;
  return seen;
}

/// A list: there may be as many of them as nodes.
Json to_json(const SeenVm& seen) {
  return {seen.id,
          seen.nodeset,
          seen.request,
          seen.job,
          to_number(seen.since),
          to_number(seen.ends),
          seen.is_registered,
          seen.is_deleted};
}

SeenVm to_vm(const Json& value) {
  return {.id = value.at(0).get<std::string>(),
          .nodeset = value.at(1).get<std::string>(),
          .request = value.at(2).get<std::string>(),
          .job = value.at(3).get<JobId>(),
          .since = to_time(value.at(4)),
          .ends = to_time(value.at(5)),
          .is_registered = value.at(6).get<bool>(),
          .is_deleted = value.at(7).get<bool>()};
}

Json to_json(JobId id, const SeenJob& seen) {
  return {id, seen.nodeset, seen.nodes, seen.n, seen.restart_count, seen.has_started};
}

SeenJob to_job(const Json& value) {
  return {.nodeset = value.at(1).get<std::string>(),
          .nodes = value.at(2).get<std::string>(),
          .n = value.at(3).get<std::size_t>(),
          .restart_count = value.at(4).get<std::uint32_t>(),
          .has_started = value.at(5).get<bool>()};
}

/// Throws for what does not fit; the caller catches.
Chronicle from_json(const Json& json) {
  Chronicle known;
  known.has_begun = true;
  for (const auto& [key, value] : json.at("requests").items())
    known.requests[key] = to_request(value);
  for (const auto& [key, value] : json.at("vms").items()) known.vms[key] = to_vm(value);
  for (const Json& value : json.at("jobs")) known.jobs[value.at(0).get<JobId>()] = to_job(value);
  const Json& mark = json.at("mark");
  known.mark = {.file = mark.at(0).get<std::uint64_t>(), .offset = mark.at(1).get<std::uint64_t>()};
  return known;
}

}  // namespace

std::string to_text(const Chronicle& known) {
  Json json{{"version", kVersion},
            {"requests", Json::object()},
            {"vms", Json::object()},
            {"jobs", Json::array()},
            {"mark", {known.mark.file, known.mark.offset}}};
  for (const auto& [key, seen] : known.requests) json["requests"][key] = to_json(seen);
  for (const auto& [key, seen] : known.vms) json["vms"][key] = to_json(seen);
  for (const auto& [id, seen] : known.jobs) json["jobs"].push_back(to_json(id, seen));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Chronicle> parse_chronicle(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion)
      return Error{ErrorKind::Invalid, "written by another version"};
    return from_json(json);
  } catch (const std::exception& error) {
    return Error{ErrorKind::Invalid, error.what()};
  }
}

}  // namespace flex
