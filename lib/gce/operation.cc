// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/operation.h"

#include "lib/gce/errors.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <fmt/format.h>

#include <utility>

namespace flex {
namespace {

using namespace std::chrono_literals;

/// How long the server may hold a wait call.
constexpr auto kLongPoll = 120s;
/// A server that answers sooner without being done is not holding the call: not again at once.
constexpr auto kHeld = 500ms;
constexpr auto kPause = 250ms;

struct Waiting {
  Caller* caller;
  std::string_view method;
  std::string path;
  std::string name;
  Then<Done> then;
};

void ask(const Waiting& waiting) {
  Call call{.name = waiting.method,
            .method = "POST",
            .path = with_query(waiting.path + "/wait", {{"fields", std::string(kOperationFields)}}),
            .doing = fmt::format("waiting for operation '{}'", waiting.name),
            .extra_time = kLongPoll};
  const auto asked = waiting.caller->now();
  waiting.caller->call(std::move(call), [waiting, asked](const Result<std::string>& reply) {
    if (!reply) return waiting.then(reply.error());
    const auto operation = parse_operation(*reply);
    if (!operation) return waiting.then(operation.error().in(waiting.name));
    if (operation->is_done) return waiting.then(outcome(*operation));
    if (waiting.caller->now() - asked >= kHeld) return ask(waiting);
    waiting.caller->after(kPause, [waiting] { ask(waiting); });
  });
}

}  // namespace

Result<Done> outcome(const Operation& operation) {
  if (operation.error) return to_error(*operation.error);
  return Done{};
}

void wait_for(Caller& caller,
              const std::string& region,
              const Operation& operation,
              Then<Done> then) {
  if (operation.is_done) {
    caller.later([operation, then = std::move(then)] { then(outcome(operation)); });
    return;
  }
  const bool is_regional = operation.zone.empty();
  ask({.caller = &caller,
       .method = is_regional ? "regionOperations.wait" : "zoneOperations.wait",
       .path = is_regional ? operation_path(region, operation.name)
                           : zone_operation_path(operation.zone, operation.name),
       .name = operation.name,
       .then = std::move(then)});
}

}  // namespace flex
