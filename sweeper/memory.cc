// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/memory.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace flex {

namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

std::int64_t to_number(TimePoint time) {
  return time.time_since_epoch().count();
}

TimePoint to_time(const Json& value) {
  return TimePoint{Seconds{value.get<std::int64_t>()}};
}

Json times_by_node(const ByNode<TimePoint>& times) {
  Json json = Json::object();
  for (const auto& [node, time] : times) json[node.text] = to_number(time);
  return json;
}

ByNode<TimePoint> nodes_with_time(const Json& json) {
  ByNode<TimePoint> times;
  for (const auto& [node, time] : json.items()) times[{node}] = to_time(time);
  return times;
}

Json to_json(const RetryState& retry) {
  return {{"attempts", retry.attempts},
          {"refusals", retry.refusals},
          {"next", to_number(retry.next)},
          {"why", retry.why},
          {"job", retry.job}};
}

RetryState to_retry(const Json& value) {
  return {.attempts = value.at("attempts").get<std::uint32_t>(),
          .refusals = value.at("refusals").get<std::uint32_t>(),
          .next = to_time(value.at("next")),
          .why = value.at("why").get<std::string>(),
          .job = value.value("job", JobId{0})};
}

Json to_json(const BootFailures& failures) {
  Json refused = Json::array();
  for (const NodeName& node : failures.refused) refused.push_back(node.text);
  return {failures.count, to_number(failures.last), std::move(refused), failures.counted};
}

BootFailures to_boot_failures(const Json& value) {
  BootFailures failures{.count = value.at(0).get<std::uint32_t>(), .last = to_time(value.at(1))};
  // Older versions wrote no more than this.
  if (value.size() < 4) return failures;
  for (const Json& node : value.at(2)) failures.refused.insert({node.get<std::string>()});
  for (const Json& vm : value.at(3)) failures.counted.insert(vm.get<std::string>());
  return failures;
}

Json to_json(const Repairs& repairs) {
  Json times = Json::array();
  for (const TimePoint time : repairs.times) times.push_back(to_number(time));
  return {{"times", std::move(times)},
          {"reason", repairs.reason},
          {"vm", repairs.vm},
          {"under_way", repairs.is_under_way},
          {"given_up", repairs.has_given_up}};
}

Repairs to_repairs(const Json& value) {
  Repairs repairs{.times = {},
                  .reason = value.at("reason").get<std::string>(),
                  .vm = value.at("vm").get<std::string>(),
                  .is_under_way = value.at("under_way").get<bool>(),
                  .has_given_up = value.at("given_up").get<bool>()};
  for (const Json& time : value.at("times")) repairs.times.push_back(to_time(time));
  return repairs;
}

/// What a node's VMs have been used for.
void read_leases(const Json& json, Memory& memory) {
  for (const auto& [node, value] : json.at("lease_ends").items()) {
    // Older versions wrote the time alone.
    const bool is_bare = value.is_number();
    memory.lease_ends[{node}] = {.ends = to_time(is_bare ? value : value.at(0)),
                                 .vm = is_bare ? "" : value.at(1).get<std::string>()};
  }
  // Older versions did not write it.
  const Json boots = json.value("boots", Json::object());
  for (const auto& [node, value] : boots.items())
    memory.boots[{node}] = {.jobs = value.at(0).get<std::vector<JobId>>(),
                            .vm = value.at(1).get<std::string>()};
  for (const Json& warned : json.at("warned"))
    memory.warned[warned.at(0).get<JobId>()] = {.ends = to_time(warned.at(1)),
                                                .restart_count = warned.at(2).get<std::uint32_t>()};
  const Json eligibility = json.value("eligibility", Json::array());
  for (const Json& job : eligibility)
    memory.eligibility[job.at(0).get<JobId>()] = {
        .restart_count = job.at(1).get<std::uint32_t>(),
        .overlooked = job.at(2).get<std::set<std::string>>(),
        .given_back = job.at(3).get<std::set<std::string>>(),
        .judged = job.size() > 4 ? job.at(4).get<std::string>() : std::string{}};
  for (const auto& [node, vm] : json.at("worked").items())
    memory.worked[{node}] = vm.get<std::string>();
  for (const auto& [node, value] : json.at("repairs").items())
    memory.repairs[{node}] = to_repairs(value);
}

void write_leases(const Memory& memory, Json& json) {
  json["lease_ends"] = Json::object();
  for (const auto& [node, lease] : memory.lease_ends)
    json["lease_ends"][node.text] = {to_number(lease.ends), lease.vm};
  json["boots"] = Json::object();
  for (const auto& [node, boot] : memory.boots) json["boots"][node.text] = {boot.jobs, boot.vm};
  json["warned"] = Json::array();
  for (const auto& [job, warned] : memory.warned)
    json["warned"].push_back({job, to_number(warned.ends), warned.restart_count});
  json["eligibility"] = Json::array();
  for (const auto& [job, known] : memory.eligibility)
    json["eligibility"].push_back(
        {job, known.restart_count, known.overlooked, known.given_back, known.judged});
  json["worked"] = Json::object();
  for (const auto& [node, vm] : memory.worked) json["worked"][node.text] = vm;
  json["repairs"] = Json::object();
  for (const auto& [node, repairs] : memory.repairs) json["repairs"][node.text] = to_json(repairs);
}

std::string join(std::string_view rule, std::string_view key) {
  return fmt::format("{} {}", rule, key);
}

/// Throws nlohmann's exceptions for what does not fit; the caller catches.
Memory from_json(const Json& json) {
  Memory memory;
  memory.round = json.at("round").get<std::uint64_t>();
  memory.last_round = to_time(json.at("last_round"));
  for (const auto& [key, value] : json.at("sightings").items()) {
    memory.sightings[key] = {.first = to_time(value.at(0)),
                             .last = to_time(value.at(1)),
                             .count = value.at(2).get<std::uint32_t>(),
                             .round = value.at(3).get<std::uint64_t>()};
  }
  for (const auto& [node, value] : json.at("retries").items())
    memory.retries[{node}] = to_retry(value);
  for (const auto& [node, value] : json.at("raised").items())
    memory.raised[{node}] = to_retry(value);
  memory.armed = nodes_with_time(json.at("armed"));
  for (const auto& [node, reason] : json.at("drains").items())
    memory.drains[{node}] = reason.get<std::string>();
  // Written since power flags are looked after.
  for (const Json& node : json.value("woken", Json::array()))
    memory.woken.insert({node.get<std::string>()});
  const Json cured = json.value("cured", Json::object());
  for (const auto& [node, value] : cured.items()) memory.cured[{node}] = to_retry(value);
  for (const auto& [set, value] : json.at("boot_failures").items())
    memory.boot_failures[set] = to_boot_failures(value);
  for (const auto& [set, value] : json.at("stopped").items()) {
    Stopped& stopped = memory.stopped[set];
    stopped.why = value.at("why").get<std::string>();
    stopped.is_clearing = value.at("clearing").get<bool>();
    stopped.is_paused = value.value("paused", false);
    for (const Json& node : value.at("drained")) stopped.drained.insert({node.get<std::string>()});
  }
  for (const auto& [waiter, value] : json.at("stockouts").items())
    memory.stockouts[waiter] = {.step = value.at(0).get<std::size_t>(),
                                .since = to_time(value.at(1)),
                                .round = value.at(2).get<std::uint64_t>(),
                                // Older versions did not write it.
                                .is_asked = value.size() < 4 || value.at(3).get<bool>(),
                                .is_shut = value.size() > 4 && value.at(4).get<bool>(),
                                .is_hopeless = value.size() > 5 && value.at(5).get<bool>()};
  // Written since ways can be shut.
  const Json shut = json.value("shut", Json::object());
  for (const auto& [waiter, value] : shut.items()) {
    ShutWays& ways = memory.shut[waiter];
    ways.restart_count = value.at("restarts").get<std::uint32_t>();
    for (const auto& [group, way] : value.at("ways").items())
      ways.ways[{group}] = {.failures = way.at(0).get<std::uint32_t>(),
                            .next = to_time(way.at(1)),
                            .why = way.at(2).get<std::string>()};
  }
  for (const Json& key : json.value("heeded", Json::array()))
    memory.heeded.insert(key.get<std::string>());
  // Written since the queue is kept.
  if (const auto quota = json.find("requests"); quota != json.end())
    memory.requests = {.limit = quota->at(0).get<std::size_t>(),
                       .probes = quota->at(1).get<std::size_t>(),
                       .learned = quota->size() < 3 ? TimePoint{} : to_time(quota->at(2))};
  for (const Json& note : json.at("notes"))
    memory.notes[note.at(0).get<JobId>()] = to_time(note.at(1));
  read_leases(json, memory);
  // Written since they are not looked for in each first round.
  if (const auto remains = json.find("remains"); remains != json.end()) {
    memory.remains_looked = to_time(remains->at("looked"));
    memory.has_policies = remains->at("policies").get<bool>();
    for (const Json& set : remains->at("loose")) memory.loose.insert(set.get<std::string>());
  }
  return memory;
}

}  // namespace

const Sighting& Memory::see(std::string_view rule, std::string_view key, TimePoint now) {
  Sighting& sighting = sightings[join(rule, key)];
  const bool is_new =
      sighting.count == 0 || now - sighting.last > longest_gap || now < sighting.last;
  if (is_new) sighting = {.first = now, .last = now, .count = 0, .round = 0};
  if (sighting.count > 0 && sighting.round == round) return sighting;
  sighting.last = now;
  sighting.round = round;
  ++sighting.count;
  return sighting;
}

const Sighting* Memory::find(std::string_view rule, std::string_view key) const {
  const auto found = sightings.find(join(rule, key));
  return found == sightings.end() ? nullptr : &found->second;
}

void Memory::forget_unseen() {
  std::erase_if(sightings, [this](const auto& entry) { return entry.second.round != round; });
}

std::string to_text(const Memory& memory) {
  Json json{{"version", kVersion},
            {"round", memory.round},
            {"last_round", to_number(memory.last_round)},
            {"sightings", Json::object()},
            {"retries", Json::object()},
            {"raised", Json::object()},
            {"armed", times_by_node(memory.armed)},
            {"drains", Json::object()},
            {"woken", Json::array()},
            {"cured", Json::object()},
            {"boot_failures", Json::object()},
            {"stopped", Json::object()},
            {"stockouts", Json::object()},
            {"requests",
             {memory.requests.limit, memory.requests.probes, to_number(memory.requests.learned)}},
            {"notes", Json::array()}};
  for (const auto& [key, sighting] : memory.sightings)
    json["sightings"][key] = {
        to_number(sighting.first), to_number(sighting.last), sighting.count, sighting.round};
  for (const auto& [node, retry] : memory.retries) json["retries"][node.text] = to_json(retry);
  for (const auto& [node, retry] : memory.raised) json["raised"][node.text] = to_json(retry);
  for (const auto& [node, reason] : memory.drains) json["drains"][node.text] = reason;
  for (const NodeName& node : memory.woken) json["woken"].push_back(node.text);
  for (const auto& [node, retry] : memory.cured) json["cured"][node.text] = to_json(retry);
  for (const auto& [set, failures] : memory.boot_failures)
    json["boot_failures"][set] = to_json(failures);
  for (const auto& [set, stopped] : memory.stopped) {
    Json nodes = Json::array();
    for (const NodeName& node : stopped.drained) nodes.push_back(node.text);
    json["stopped"][set] = {{"why", stopped.why},
                            {"drained", std::move(nodes)},
                            {"clearing", stopped.is_clearing},
                            {"paused", stopped.is_paused}};
  }
  for (const auto& [waiter, state] : memory.stockouts)
    json["stockouts"][waiter] = {state.step,
                                 to_number(state.since),
                                 state.round,
                                 state.is_asked,
                                 state.is_shut,
                                 state.is_hopeless};
  json["shut"] = Json::object();
  for (const auto& [waiter, shut] : memory.shut) {
    Json ways = Json::object();
    for (const auto& [group, way] : shut.ways)
      ways[group.text] = {way.failures, to_number(way.next), way.why};
    json["shut"][waiter] = {{"restarts", shut.restart_count}, {"ways", std::move(ways)}};
  }
  json["heeded"] = memory.heeded;
  for (const auto& [job, time] : memory.notes) json["notes"].push_back({job, to_number(time)});
  write_leases(memory, json);
  json["remains"] = {{"looked", to_number(memory.remains_looked)},
                     {"policies", memory.has_policies},
                     {"loose", memory.loose}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Memory> parse_memory(std::string_view text) {
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
