// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/caller.h"

#include "lib/gce/errors.h"
#include "lib/gce/random.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <optional>
#include <utility>

namespace flex {

struct Caller::Pending {
  Call call{};
  Then<std::string> then{};
  HttpRequest request{};
  int tries = 0;
  bool has_new_token = false;
  std::chrono::steady_clock::time_point sent{};
};

Caller::Caller(CallerSettings settings, HttpClient& http, Backoff& backoff, Tokens& tokens)
    : settings_(std::move(settings)), http_(&http), backoff_(&backoff), tokens_(&tokens) {}

void Caller::later(std::function<void()> what) {
  http_->after(std::chrono::milliseconds{0}, std::move(what));
}

void Caller::after(std::chrono::milliseconds delay, std::function<void()> what) {
  http_->after(delay, std::move(what));
}

std::chrono::steady_clock::time_point Caller::now() const {
  return http_->now();
}

void Caller::call(Call call, Then<std::string> then) {
  auto pending = std::make_shared<Pending>();
  pending->call = std::move(call);
  pending->then = std::move(then);
  need_project([this, pending](const Result<Done>& known) {
    if (!known) return fail(pending, known.error());
    const Call& what = pending->call;
    HttpRequest& request = pending->request;
    request.method = what.method;
    request.url = project_url(settings_.endpoint, settings_.project) + what.path;
    request.timeout = settings_.call_timeout + what.extra_time;
    if (what.is_write) request.url = with_query(request.url, {{"requestId", random_uuid()}});
    if (what.body) {
      request.body = what.body(settings_.project);
      request.headers = {"Content-Type: application/json"};
    }
    attempt(pending);
  });
}

void Caller::need_project(std::function<void(const Result<Done>&)> then) {
  if (!settings_.project.empty()) return then(Done{});
  waiting_.push_back(std::move(then));
  if (waiting_.size() > 1) return;
  // Through a timer: a key file knows its project at once, and no answer may come from inside.
  later([this] {
    tokens_->fetch_project([this](const Result<std::string>& project) {
      if (project) settings_.project = *project;
      for (const auto& each : std::exchange(waiting_, {}))
        each(project ? Result<Done>(Done{}) : Result<Done>(project.error()));
    });
  });
}

void Caller::attempt(const PendingPtr& pending) {
  tokens_->get([this, pending](const Result<std::string>& token) {
    if (!token) return fail(pending, token.error());
    send(pending, *token);
  });
}

void Caller::send(const PendingPtr& pending, const std::string& token) {
  ++pending->tries;
  if (stats_.calls++ == 0) stats_.first_call = http_->now();
  if (pending->tries > 1) ++stats_.retries;
  HttpRequest request = pending->request;
  request.bearer = token;
  pending->request.bearer = token;
  pending->sent = http_->now();
  http_->send(std::move(request),
              [this, pending](Result<HttpResponse> reply) { on_reply(pending, std::move(reply)); });
}

void Caller::tell(const Pending& pending, const Result<HttpResponse>& reply) const {
  if (!observer_) return;
  const auto took = http_->now() - pending.sent;
  observer_({.method = pending.call.name,
             .status = reply ? reply->status : 0,
             .took = std::chrono::duration_cast<std::chrono::milliseconds>(took),
             .is_retry = pending.tries > 1});
}

void Caller::on_reply(const PendingPtr& pending, Result<HttpResponse> reply) {
  tell(*pending, reply);
  if (reply && reply->status >= 200 && reply->status < 300)
    return pending->then(std::move(reply->body));
  if (reply && reply->status == 401 && !pending->has_new_token) {
    // Revoked, or the clock jumped: another token, once.
    pending->has_new_token = true;
    tokens_->forget(pending->request.bearer);
    return attempt(pending);
  }
  Error error =
      reply ? to_error(parse_complaint(reply->status, reply->body)) : std::move(reply.error());
  const auto hint = reply ? reply->retry_after : std::nullopt;
  if (error.kind == ErrorKind::Retry &&
      backoff_->again(pending->tries, hint, [this, pending] { attempt(pending); }))
    return;
  fail(pending, std::move(error));
}

void Caller::fail(const PendingPtr& pending, Error error) {
  if (error.kind == ErrorKind::Retry && backoff_->is_over()) error = backoff_->time_is_up(error);
  pending->then(std::move(error).in(pending->call.doing));
}

}  // namespace flex
