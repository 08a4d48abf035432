// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/curl_http.h"

#include "lib/gce/curl_transfer.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

namespace flex {
namespace {

using std::chrono::milliseconds;
using TimePointSteady = std::chrono::steady_clock::time_point;

class CurlHttp final : public HttpClient {
 public:
  CurlHttp(CurlSettings settings, CurlMultiPtr multi)
      : settings_(std::move(settings)), multi_(std::move(multi)) {
    curl().multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
    curl().multi_setopt(
        multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(settings_.max_in_flight));
  }

  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;

  ~CurlHttp() override {
    for (auto& [handle, transfer] : active_) curl().multi_remove_handle(multi_.get(), handle);
  }

  void send(HttpRequest request, Answer answer) override {
    auto transfer = std::make_unique<Transfer>();
    transfer->request = std::move(request);
    transfer->answer = std::move(answer);
    queue_.push_back(std::move(transfer));
  }

  void after(milliseconds delay, std::function<void()> what) override {
    if (is_expired_ && delay > milliseconds{0}) return;
    timers_.emplace(now() + delay, std::move(what));
  }

  void run(TimePointSteady deadline) override {
    deadline_ = deadline;
    for (;;) {
      if (now() >= deadline_) return expire();
      start_queued();
      int running = 0;
      curl().multi_perform(multi_.get(), &running);
      const bool has_answered = answer_finished();
      const bool has_fired = fire_due();
      if (queue_.empty() && active_.empty() && timers_.empty()) return;
      // An answer has often started something: no sleep before that is on its way.
      if (!has_answered && !has_fired) sleep();
    }
  }

 private:
  [[nodiscard]] milliseconds left() const {
    return std::chrono::ceil<milliseconds>(
        std::max(deadline_ - now(), TimePointSteady::duration{}));
  }

  void start_queued() {
    while (!queue_.empty() && active_.size() < std::max<std::size_t>(settings_.max_in_flight, 1)) {
      auto transfer = std::move(queue_.front());
      queue_.pop_front();
      start(std::move(transfer));
    }
  }

  void start(std::unique_ptr<Transfer> transfer) {
    if (auto allowed = check_url(transfer->request.url, settings_); !allowed)
      return refuse(*transfer, std::move(allowed.error()));
    if (idle_.empty()) {
      transfer->handle.reset(curl().easy_init());
    } else {
      transfer->handle = std::move(idle_.back());
      idle_.pop_back();
    }
    CURL* handle = transfer->handle.get();
    if (handle == nullptr)
      return refuse(*transfer, {ErrorKind::Internal, "libcurl gives no handle", "HTTP_FAILED"});
    prepare(*transfer, settings_, left());
    if (curl().multi_add_handle(multi_.get(), handle) != CURLM_OK)
      return refuse(*transfer, {ErrorKind::Internal, "libcurl takes no transfer", "HTTP_FAILED"});
    active_.emplace(handle, std::move(transfer));
  }

  /// Through a timer, so that no answer comes from inside send().
  void refuse(Transfer& transfer, Error error) {
    after(milliseconds{0},
          [answer = std::move(transfer.answer), error = std::move(error)] { answer(error); });
  }

  bool answer_finished() {
    // First collected, then answered: an answer may start transfers.
    std::vector<std::pair<Answer, Result<HttpResponse>>> done;
    int waiting = 0;
    while (const CURLMsg* message = curl().multi_info_read(multi_.get(), &waiting)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      auto node = active_.extract(message->easy_handle);
      if (node.empty()) continue;
      Transfer& transfer = *node.mapped();
      curl().multi_remove_handle(multi_.get(), node.key());
      auto response = finish(transfer, code);
      done.emplace_back(std::move(transfer.answer), std::move(response));
      idle_.push_back(std::move(transfer.handle));
    }
    // The places that became free are taken before the answers are worked on.
    start_queued();
    for (auto& [answer, response] : done) answer(std::move(response));
    return !done.empty();
  }

  bool fire_due() {
    const auto due = timers_.upper_bound(now());
    if (due == timers_.begin()) return false;
    fire_until(due);
    return true;
  }

  void fire_until(std::multimap<TimePointSteady, std::function<void()>>::iterator end) {
    std::vector<std::function<void()>> what;
    for (auto it = timers_.begin(); it != end; ++it) what.push_back(std::move(it->second));
    timers_.erase(timers_.begin(), end);
    for (auto& each : what) each();
  }

  void sleep() {
    auto until = deadline_;
    if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
    const auto wait = std::chrono::ceil<milliseconds>(until - now());
    const auto bounded = std::clamp(wait, milliseconds{0}, milliseconds{1000});
    curl().multi_poll(multi_.get(), nullptr, 0, static_cast<int>(bounded.count()), nullptr);
  }

  /// Answers everything, and everything that these answers start, until it is quiet.
  void expire() {
    is_expired_ = true;
    while (!queue_.empty() || !active_.empty() || !timers_.empty()) {
      std::vector<Answer> answers;
      for (auto& [handle, transfer] : active_) {
        curl().multi_remove_handle(multi_.get(), handle);
        answers.push_back(std::move(transfer->answer));
      }
      active_.clear();
      for (auto& transfer : queue_) answers.push_back(std::move(transfer->answer));
      queue_.clear();
      for (auto& answer : answers)
        answer(Error{ErrorKind::Retry, "no answer before the deadline", "DEADLINE"});
      fire_until(timers_.end());
    }
    is_expired_ = false;
  }

  CurlSettings settings_;
  CurlMultiPtr multi_;
  std::deque<std::unique_ptr<Transfer>> queue_{};
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> active_{};
  std::vector<CurlPtr> idle_{};
  std::multimap<TimePointSteady, std::function<void()>> timers_{};
  TimePointSteady deadline_ = TimePointSteady::max();
  bool is_expired_ = false;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> make_curl_http(CurlSettings settings) {
  if (const auto& loaded = load_curl(); !loaded) return loaded.error();
  CurlMultiPtr multi(curl().multi_init());
  if (!multi) return Error{ErrorKind::Internal, "libcurl does not start", "HTTP_FAILED"};
  return std::unique_ptr<HttpClient>(
      std::make_unique<CurlHttp>(std::move(settings), std::move(multi)));
}

}  // namespace flex
