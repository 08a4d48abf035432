// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/source.h"

#include "ctl/known.h"
#include "ctl/status/report.h"
#include "lib/core/state_file.h"
#include "lib/fleet/session.h"
#include "lib/gce/curl_http.h"
#include "lib/gce/urls.h"
#include "sweeper/observe.h"
#include "sweeper/status.h"

#include <fmt/format.h>

#include <utility>

namespace flex {

namespace {

constexpr std::size_t kMostStatus = std::size_t{64} << 20U;
constexpr std::chrono::seconds kPatience{3};

/// The host of "host:port"; of an IPv6 address without its brackets.
std::string host_of(const std::string& listen) {
  std::string host = listen.substr(0, listen.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

/// Empty if there is none, or it is not for us: then the sweeper says no.
std::string load_token(const std::string& path) {
  constexpr std::size_t kMostToken = 4096;
  if (path.empty()) return {};
  const auto text = read_small_file(path, kMostToken);
  return text ? text->substr(0, text->find_first_of(" \t\r\n")) : std::string{};
}

/// Where the sweeper on this host answers: the token goes over plain HTTP, so it does not leave it.
std::string own_address(const std::string& listen) {
  const std::string host = host_of(listen);
  const std::string port = listen.substr(listen.rfind(':'));
  if (host == "0.0.0.0") return "127.0.0.1" + port;
  if (host == "::") return "[::1]" + port;
  return is_loopback(host) ? listen : std::string{};
}

Result<std::string> ask_port(const Config& config) {
  if (config.sweeper.listen.empty() || config.sweeper.listen == "off")
    return Error{ErrorKind::NotFound, "sweeper.listen is off"};
  const std::string listen = own_address(config.sweeper.listen);
  if (listen.empty())
    return Error{ErrorKind::Denied, "not asked over plain HTTP outside of this host"};
  auto http = make_curl_http({.max_in_flight = 1, .connect_timeout = kPatience});
  if (!http) return std::move(http).error();
  Result<std::string> answer = Error{ErrorKind::Retry, "no answer"};
  (*http)->send({.method = "GET",
                 .url = fmt::format("http://{}/status.json", listen),
                 .headers = {},
                 .body = {},
                 .timeout = kPatience,
                 .bearer = load_token(config.sweeper.listen_token_file)},
                [&](Result<HttpResponse> got) {
                  if (!got)
                    answer = std::move(got).error();
                  else if (got->status == 200)
                    answer = std::move(got->body);
                  else
                    answer = Error{ErrorKind::Denied, fmt::format("HTTP status {}", got->status)};
                });
  (*http)->run(std::chrono::steady_clock::now() + kPatience);
  return answer;
}

/// Of a sweeper that waits for another host's slurmctld: it has seen nothing. Empty: it has.
std::string why_blind(const std::string& text) {
  const auto report = parse_report(text);
  if (!report || report->state != "passive") return {};
  return fmt::format("this host's sweeper is passive: {}", report->why);
}

}  // namespace

std::string StatusSource::doing() const {
  if (is_live_) return "looking at slurmctld and Compute Engine";
  if (state_dir_.empty()) return "looking for the sweeper";
  return fmt::format("reading {}/status.json", state_dir_);
}

Result<StatusText> StatusSource::read() {
  if (is_live_) return look({});
  if (state_dir_.empty()) {
    auto found = state_dir_of(setup_);
    if (found) state_dir_ = std::move(*found);
  }
  std::string why = "its state directory is not known";
  if (!state_dir_.empty()) {
    std::string path = state_dir_ + "/status.json";
    auto text = read_small_file(path, kMostStatus);
    if (text) return heed({.text = std::move(*text), .from = "file", .where = std::move(path)});
    why = text.error().what;
  }
  auto answer = ask_port(setup_.config);
  if (answer)
    return heed(
        {.text = std::move(*answer), .from = "http", .where = setup_.config.sweeper.listen});
  const std::string absent =
      fmt::format("no sweeper is to be found ({}; {}: {}): systemctl start flex-sweeper",
                  why,
                  setup_.config.sweeper.listen,
                  answer.error().what);
  auto own = look({});
  if (!own) return Error{own.error().kind, fmt::format("{}; and {}", absent, own.error().what)};
  own->trouble.push_back(absent);
  return own;
}

Result<StatusText> StatusSource::heed(StatusText said) {
  const std::string blind = why_blind(said.text);
  if (blind.empty()) return said;
  auto own = look(blind);
  if (own) return own;
  said.trouble.push_back(
      fmt::format("{}: ask there; it sees nothing, and {}", blind, own.error().what));
  return said;
}

Result<StatusText> StatusSource::look(const std::string& why) {
  if (setup_.scheduler == nullptr) return Error{ErrorKind::Invalid, setup_.why_no_slurm};
  if (cloud_ == nullptr) {
    auto cluster = cluster_of(setup_);
    if (!cluster) return std::move(cluster).error();
    auto cloud = open_cloud(setup_.config, RetryPolicy{.limit = 2});
    if (!cloud) return std::move(cloud).error();
    cloud_ = std::move(*cloud);
    shot_.cluster = std::move(*cluster);
  }
  if (state_dir_.empty()) {
    auto found = state_dir_of(setup_);
    if (found) state_dir_ = std::move(*found);
  }
  const auto started = std::chrono::steady_clock::now();
  const std::size_t calls = cloud_->stats().calls;
  cloud_->set_deadline(started + setup_.config.api.run_timeout);
  const Known known = state_dir_.empty() ? Known{} : read_known(state_dir_);
  shot_.pauses = known.pauses;
  const TimePoint now = wall_clock();
  const auto seen = observe_whole(*cloud_, *setup_.scheduler, setup_.config, now, shot_);
  if (!seen) return seen.error().in("a look of flexctl's own failed");
  Status status;
  status.state = "live";
  status.why = why;
  status.interval = setup_.config.sweeper.interval;
  status.started = status.last_complete = now;
  status.last_round = {.number = 0,
                       .started = now,
                       .took = std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::steady_clock::now() - started),
                       .is_complete = true,
                       .error = {},
                       .calls = cloud_->stats().calls - calls};
  return StatusText{.text = to_json_text(status, setup_.config, shot_, known.memory),
                    .from = "live",
                    .where = "slurmctld and Compute Engine"};
}

}  // namespace flex
