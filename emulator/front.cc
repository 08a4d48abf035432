// SPDX-License-Identifier: GPL-2.0-or-later
// API calls from the outside in: route, access, shapes, latency, faults, handler, mask, journal.
#include "emulator/front.h"

#include "emulator/fields.h"
#include "emulator/permissions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

namespace flex::emulator {

namespace {

constexpr double kWaitSeconds = 120;  // the API's own bound of a wait
constexpr double kHoldSeconds = 120;  // longer than any client waits for an answer
constexpr double kLookSeconds = 0.005;
constexpr std::size_t kMaxReplays = 200000;

void sleep_ms(double ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

Reply no_method(const HttpIn& in) {
  const std::vector<std::string> verbs = shapes().verbs(in.path);
  if (verbs.empty())
    return refuse(
        400,
        "badRequest",
        fmt::format("No method of the Compute API served here has the path '{}'.", in.path));
  return refuse(
      400,
      "badRequest",
      fmt::format("The path '{}' takes {}, not {}.", in.path, fmt::join(verbs, ", "), in.verb));
}

HttpOut reply_out(const Reply& reply, const std::string& fields) {
  if (reply.status != 200 || fields.empty()) return json_out(reply.status, reply.body);
  const auto mask = parse_fields(fields);
  if (!mask) return json_out(400, invalid("Invalid field selection " + fields).body);
  return json_out(200, apply_fields(*mask, reply.body));
}

/// The parameters are checked here; what a field must hold is the handlers' business.
std::optional<Reply> check_shape(const HttpIn& in,
                                 const Route& route,
                                 const Query& query,
                                 Json& body) {
  if (auto bad = check_query(shapes(), *route.method, query))
    return refuse(400, "badRequest", *bad);
  const std::string& message = route.method->body;
  body = in.body.empty() ? Json::object() : Json::parse(in.body, nullptr, false);
  if (body.is_discarded()) return refuse(400, "parseError", "Invalid JSON payload received.");
  if (message.empty()) {
    if (auto bad = check_no_body(*route.method, body)) return refuse(400, "badRequest", *bad);
    body = Json::object();
    return std::nullopt;
  }
  if (auto bad = check_message(shapes(), message, body)) return refuse(400, "badRequest", *bad);
  body = without_output_only(shapes(), message, body);
  return std::nullopt;
}

}  // namespace

HttpOut json_out(int status, const Json& body) {
  return {.status = status, .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpOut Front::handle(const HttpIn& in) {
  HttpOut out = answer(in);
  double skew = 0;
  {
    const std::lock_guard lock(mutex_);
    skew = world_.settings.clock_skew_seconds;
  }
  out.headers.emplace_back("Date", format_http_date(steady_wall() + skew));
  return out;
}

HttpOut Front::answer(const HttpIn& in) {
  if (!in.origin.empty())
    return json_out(403, refuse(403, "forbidden", "Web pages may not use the emulator.").body);
  if (in.path.starts_with("/_emulator/oauth/token") || in.path == "/token") return handle_token(in);
  if (in.path.starts_with("/_emulator/")) return handle_control(in);
  if (in.path == "/" || in.path.starts_with("/computeMetadata")) return handle_metadata(in);
  if (in.path.starts_with("/batch/compute")) return handle_batch(in);
  return handle_api(in);
}

HttpOut Front::handle_api(const HttpIn& in) {
  JournalEntry entry{.verb = in.verb, .path = in.path, .body = in.body, .started = steady_wall()};
  for (const auto& [key, value] : in.query) entry.query[key] = value;
  HttpOut out = serve(in, entry);
  entry.status = out.is_dropped ? 0 : out.status;
  entry.ended = steady_wall();
  journal_.add(std::move(entry));
  return out;
}

HttpOut Front::serve(const HttpIn& in, JournalEntry& entry) {
  const auto route = shapes().find(in.verb, in.path);
  if (!route) {
    const Reply reply = no_method(in);
    return json_out(reply.status, reply.body);
  }
  entry.method = route->method->name;
  FaultPlan plan;
  double latency_ms = 0;
  {
    const std::lock_guard lock(mutex_);
    plan = faults_.draw(entry.method);
    latency_ms = latency_of(entry.method) + plan.latency_ms;
    if (plan.fault) entry.fault = to_string(plan.fault->kind);
  }
  Call call{.method = route->method,
            .params = route->params,
            .query = with_api_names(*route->method, in.query)};
  if (auto bad = check_access(in, *route)) return json_out(bad->status, bad->body);
  if (auto bad = check_shape(in, *route, call.query, call.body))
    return json_out(bad->status, bad->body);
  return act(in, std::move(call), plan, latency_ms);
}

std::optional<HttpOut> Front::strike(const HttpIn& in, const Fault& fault, Call& call) {
  const auto error = [&fault] {
    return error_json(fault.code.empty() ? "INTERNAL_ERROR" : fault.code,
                      fault.message.empty() ? "An injected error." : fault.message);
  };
  switch (fault.kind) {
    case FaultKind::HoldBefore:
      hold(in);
      return HttpOut{.is_dropped = true};
    case FaultKind::Reset:
      return HttpOut{.is_dropped = true};
    case FaultKind::Unavailable:
      return json_out(503, refuse(503, "backendError", "Backend Error").body);
    case FaultKind::TooMany: {
      HttpOut out = json_out(429, refuse(429, "rateLimitExceeded", "Rate Limit Exceeded").body);
      out.headers.emplace_back("Retry-After", std::to_string(fault.retry_after));
      return out;
    }
    case FaultKind::OperationError:
      call.operation_fault = error();
      break;
    case FaultKind::RequestFailed:
      call.request_fault = error();
      break;
    case FaultKind::LostReply:
    case FaultKind::HoldAfter:
    case FaultKind::Latency:
      break;
  }
  return std::nullopt;
}

HttpOut Front::act(const HttpIn& in, Call call, const FaultPlan& plan, double latency_ms) {
  sleep_ms(latency_ms / 2);
  if (plan.fault) {
    if (auto out = strike(in, *plan.fault, call)) {
      if (!out->is_dropped) sleep_ms(latency_ms / 2);
      return *std::move(out);
    }
  }
  const auto reply = run(call, in);
  sleep_ms(latency_ms / 2);
  const auto befalls = [&plan](FaultKind kind) { return plan.fault && plan.fault->kind == kind; };
  if (befalls(FaultKind::HoldAfter)) hold(in);
  if (!reply || befalls(FaultKind::LostReply) || befalls(FaultKind::HoldAfter))
    return {.is_dropped = true};
  const auto fields = call.query.find("fields");
  return reply_out(*reply, fields == call.query.end() ? std::string() : fields->second);
}

std::optional<Reply> Front::run(Call& call, const HttpIn& in) {
  const Handler handler = find_handler(call.method->name);
  if (handler == nullptr)
    return refuse(501, "notImplemented", call.method->name + " is not served by the emulator.");
  const std::string request_id = call.query_value("requestId");
  const std::string replay = in.verb + " " + in.path + " " + request_id;
  std::unique_lock lock(mutex_);
  // The state is saved already: what is answered now would be forgotten.
  if (is_stopping_) return std::nullopt;
  world_.tick();
  if (!request_id.empty()) {
    const auto known = replays_.find(replay);
    if (known != replays_.end()) {
      const auto operation = world_.operations.find(known->second);
      if (operation != world_.operations.end())
        return Reply{.status = 200, .body = to_json(world_, operation->second)};
    }
  }
  if (call.method->name.ends_with("Operations.wait")) wait_for_operation(lock, call);
  if (is_stopping_) return std::nullopt;
  Reply reply = handler(world_, call);
  if (!request_id.empty() && reply.status == 200) {
    if (replays_.size() > kMaxReplays) replays_.clear();
    replays_[replay] = call.place().key(text_of(reply.body, "name"));
  }
  world_.tick();
  settle();
  return reply;
}

void Front::wait_for_operation(std::unique_lock<std::mutex>& lock, const Call& call) {
  const std::string key = call.place().key(call.param("operation"));
  const double deadline = steady_wall() + kWaitSeconds;
  while (!is_stopping_) {
    world_.tick();
    const auto found = world_.operations.find(key);
    const double now = steady_wall();
    if (found == world_.operations.end() || found->second.status == OperationStatus::Done ||
        now >= deadline)
      break;
    // A due time in the past: the operation waits for something else, whose end wakes us.
    const double due = found->second.due_wall;
    const double until = due > now ? std::min(due, deadline) : deadline;
    changed_.wait_for(lock, std::chrono::duration<double>(until - now));
  }
  settle();
}

void Front::hold(const HttpIn& in) {
  const double deadline = steady_wall() + kHoldSeconds;
  std::unique_lock lock(mutex_);
  ++held_;
  changed_.notify_all();
  while (!is_stopping_ && steady_wall() < deadline && !(in.is_gone && in.is_gone()))
    changed_.wait_for(lock, std::chrono::duration<double>(kLookSeconds));
  --held_;
  changed_.notify_all();
}

double Front::latency_of(const std::string& method) {
  const auto special = world_.settings.latency_by_method.find(method);
  return special == world_.settings.latency_by_method.end() ? world_.settings.latency_ms
                                                            : special->second;
}

std::optional<Reply> Front::check_access(const HttpIn& in, const Route& route) {
  constexpr std::string_view kBearer = "Bearer ";
  std::string token;
  if (in.authorization.starts_with(kBearer)) token = in.authorization.substr(kBearer.size());
  const auto query = in.query.find("access_token");
  if (token.empty() && query != in.query.end()) token = query->second;
  const std::lock_guard lock(mutex_);
  if (token.empty() || (world_.settings.strict_tokens && !tokens_.contains(token)))
    return refuse(401,
                  "authError",
                  token.empty() ? "Request is missing required authentication credential."
                                : "Invalid Credentials");
  if (world_.settings.lacks_scopes)
    return refuse(
        403, "insufficientPermissions", "Request had insufficient authentication scopes.");
  const auto project = route.params.find("project");
  if (!world_.settings.projects.empty() && project != route.params.end() &&
      !world_.settings.projects.contains(project->second))
    return refuse(403,
                  "forbidden",
                  fmt::format("Required 'compute' permission for 'projects/{}'", project->second));
  const std::string denied =
      denied_permission(route.method->name, world_.settings.denied_permissions);
  if (!denied.empty())
    return refuse(403,
                  "forbidden",
                  fmt::format("Required '{}' permission for '{}'",
                              denied,
                              in.path.substr(std::string_view("/compute/v1/").size())));
  return std::nullopt;
}

}  // namespace flex::emulator
