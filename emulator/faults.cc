// SPDX-License-Identifier: GPL-2.0-or-later
// Faults to order.
#include "emulator/faults.h"

#include "emulator/shapes.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace flex::emulator {

namespace {

constexpr std::array<std::pair<FaultKind, std::string_view>, 9> kKinds{{
    {FaultKind::LostReply, "lost_reply"},
    {FaultKind::Reset, "reset"},
    {FaultKind::HoldBefore, "hold_before"},
    {FaultKind::HoldAfter, "hold_after"},
    {FaultKind::Unavailable, "503"},
    {FaultKind::TooMany, "429"},
    {FaultKind::OperationError, "operation_error"},
    {FaultKind::RequestFailed, "request_failed"},
    {FaultKind::Latency, "latency"},
}};

std::optional<FaultKind> kind_of(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  for (const auto& [kind, name] : kKinds)
    if (name == text) return kind;
  return std::nullopt;
}

Error bad(const std::string& what) {
  return Error{ErrorKind::Invalid, what};
}

bool set(Fault& fault, const std::string& key, const Json& value) {
  if (key == "count" && value.is_number_integer()) {
    fault.count = value.get<std::int64_t>();
  } else if (key == "probability" && value.is_number()) {
    fault.probability = value.get<double>();
  } else if (key == "after" && value.is_number_integer()) {
    fault.after = value.get<std::int64_t>();
  } else if (key == "seed" && value.is_number_unsigned()) {
    fault.seed = value.get<std::uint64_t>();
  } else if (key == "code" && value.is_string()) {
    fault.code = value.get<std::string>();
  } else if (key == "message" && value.is_string()) {
    fault.message = value.get<std::string>();
  } else if (key == "retry_after" && value.is_number_integer()) {
    fault.retry_after = value.get<std::int64_t>();
  } else if (key == "ms" && value.is_number()) {
    fault.ms = value.get<double>();
  } else {
    return false;
  }
  return true;
}

/// True if the fault hits this call; keeps its counters.
bool strikes(Fault& fault) {
  if (++fault.seen <= fault.after) return false;
  if (fault.count && fault.hits >= *fault.count) return false;
  if (fault.probability &&
      std::uniform_real_distribution<double>(0, 1)(fault.random) >= *fault.probability)
    return false;
  ++fault.hits;
  return true;
}

}  // namespace

std::string_view to_string(FaultKind kind) {
  for (const auto& [known, name] : kKinds)
    if (known == kind) return name;
  return "";
}

Result<std::uint64_t> Faults::add(const Json& json) {
  if (!json.is_object()) return bad("a fault is a JSON object");
  Fault fault{.method = text_of(json, "method", "*")};
  const auto kind = kind_of(member(json, "kind"));
  if (!kind) return bad("unknown kind " + member(json, "kind").dump());
  fault.kind = *kind;
  if (fault.method != "*" && shapes().method(fault.method) == nullptr)
    return bad("unknown method '" + fault.method + "'");
  for (const auto& [key, value] : json.items())
    if (key != "method" && key != "kind" && !set(fault, key, value))
      return bad(fmt::format("bad or unknown key '{}': {}", key, value.dump()));
  if (!fault.count && !fault.probability) fault.count = 1;
  fault.random.seed(fault.seed);
  fault.id = ++next_id_;
  faults_.push_back(std::move(fault));
  return next_id_;
}

FaultPlan Faults::draw(const std::string& method) {
  FaultPlan plan;
  for (Fault& fault : faults_) {
    if (fault.method != "*" && fault.method != method) continue;
    if (fault.kind == FaultKind::Latency) {
      if (strikes(fault)) plan.latency_ms += fault.ms;
    } else if (!plan.fault && strikes(fault)) {
      plan.fault = fault;
    }
  }
  return plan;
}

Json Faults::list() const {
  Json list = Json::array();
  for (const Fault& fault : faults_) {
    Json json{{"id", fault.id},
              {"method", fault.method},
              {"kind", to_string(fault.kind)},
              {"after", fault.after},
              {"seen", fault.seen},
              {"hits", fault.hits}};
    if (fault.count) json["count"] = *fault.count;
    if (fault.probability) json["probability"] = *fault.probability;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace flex::emulator
