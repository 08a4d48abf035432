// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/support/fake_http.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace flex {

void FakeHttp::send(HttpRequest request, Answer answer) {
  script_->log.push_back(request);
  in_flight_.push_back({now() + script_->latency, std::move(request), std::move(answer)});
  script_->most_in_flight = std::max(script_->most_in_flight, in_flight_.size());
}

void FakeHttp::after(std::chrono::milliseconds delay, std::function<void()> what) {
  if (is_expired_ && delay > std::chrono::milliseconds{0}) return;
  timers_.emplace(now() + delay, std::move(what));
}

void FakeHttp::answer_first() {
  Exchange first = std::move(in_flight_.front());
  in_flight_.pop_front();
  script_->now = std::max(script_->now, first.ends);
  first.answer(script_->handler(first.request));
}

void FakeHttp::fire_first() {
  auto node = timers_.extract(timers_.begin());
  script_->now = std::max(script_->now, node.key());
  node.mapped()();
}

void FakeHttp::run(std::chrono::steady_clock::time_point deadline) {
  while (!timers_.empty() || !in_flight_.empty()) {
    const bool is_timer = in_flight_.empty() ||
                          (!timers_.empty() && timers_.begin()->first <= in_flight_.front().ends);
    const auto next = is_timer ? timers_.begin()->first : in_flight_.front().ends;
    if (next >= deadline) {
      script_->now = std::max(script_->now, deadline);
      return expire();
    }
    if (is_timer)
      fire_first();
    else
      answer_first();
  }
}

void FakeHttp::expire() {
  is_expired_ = true;
  while (!timers_.empty() || !in_flight_.empty()) {
    for (auto& exchange : std::exchange(in_flight_, {}))
      exchange.answer(Error{ErrorKind::Retry, "no answer before the deadline", "DEADLINE"});
    for (auto& [when, what] : std::exchange(timers_, {})) what();
  }
  is_expired_ = false;
}

HttpResponse ok(std::string body) {
  return {.status = 200, .body = std::move(body), .content_type = "application/json"};
}

HttpResponse refusal(int status, const std::string& reason, const std::string& message) {
  const nlohmann::json body = {
      {"error",
       {{"code", status},
        {"message", message},
        {"errors", nlohmann::json::array({{{"reason", reason}, {"message", message}}})}}}};
  return {.status = status, .body = body.dump(), .content_type = "application/json"};
}

HttpResponse token_reply(const std::string& token, int lifetime) {
  return {.status = 200,
          .body = fmt::format(
              R"({{"access_token":"{}","expires_in":{},"token_type":"Bearer"}})", token, lifetime),
          .content_type = "application/json",
          .metadata_flavor = "Google"};
}

bool is_metadata(const HttpRequest& request) {
  return request.url.find("/computeMetadata/") != std::string::npos;
}

std::string percent_decode(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string query_value(const std::string& url, const std::string& key) {
  const auto query = url.find('?');
  if (query == std::string::npos) return {};
  std::size_t begin = query + 1;
  while (begin < url.size()) {
    const auto end = std::min(url.find('&', begin), url.size());
    const std::string pair = url.substr(begin, end - begin);
    if (pair.starts_with(key + "=")) return percent_decode(pair.substr(key.size() + 1));
    begin = end + 1;
  }
  return {};
}

}  // namespace flex
