// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/session.h"

#include "lib/config/load.h"
#include "lib/core/clock.h"
#include "lib/fleet/history.h"
#include "lib/fleet/queue.h"
#include "lib/gce/curl_http.h"
#include "lib/gce/rest_cloud.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/libslurm_scheduler.h"

#include <array>
#include <iostream>
#include <utility>

namespace flex {

namespace {

void complain(const Log& log, std::string_view event, const std::string& why) {
  log.error(event, {{"why", why}});
  std::cerr << why << '\n';
}

}  // namespace

Result<std::unique_ptr<Cloud>> open_cloud(const Config& config, const RetryPolicy& retry) {
  return open_cloud(CloudSettings{.endpoint = config.api.endpoint,
                                  .project = config.project,
                                  .region = config.region,
                                  .credentials = config.credentials,
                                  .max_in_flight = config.api.max_in_flight,
                                  .call_timeout = config.api.call_timeout,
                                  .run_timeout = config.api.run_timeout,
                                  .retry = retry,
                                  .slurm_user = slurm_user_id()});
}

std::optional<Session> open_session(const Options& options,
                                    const Log& log,
                                    const RetryPolicy& retry) {
  start_loading_curl();
  // Slurm first: only it knows SlurmUser, to whom the config may belong. The config's problems are
  // told first all the same.
  auto scheduler = open_libslurm();
  LoadedConfig loaded = load_config(config_path(options), slurm_user_id());
  for (const Problem& problem : loaded.problems) complain(log, "bad_config", problem.text());
  if (!loaded.ok()) return std::nullopt;
  for (const std::string& warning : loaded.config.warnings)
    log.warning("config", {{"why", warning}});

  Session session;
  session.config = std::move(loaded.config);
  if (!scheduler) {
    complain(log, "bad_slurm_conf", scheduler.error().what);
    return std::nullopt;
  }
  session.scheduler = std::move(*scheduler);
  session.cluster = session.config.cluster;
  if (session.cluster.empty()) {
    auto name = session.scheduler->load_cluster_name();
    if (!name) {
      complain(
          log, "no_cluster_name", name.error().what + " (or set 'cluster' in flex-start.yaml)");
      return std::nullopt;
    }
    session.cluster = std::move(*name);
  }
  auto cloud = open_cloud(session.config, retry);
  if (!cloud) {
    complain(log, "bad_credentials", cloud.error().what);
    return std::nullopt;
  }
  session.cloud = std::move(*cloud);
  session.cloud->set_call_observer([tally = session.calls](const CallNote& n) { tally->add(n); });
  return session;
}

namespace {

std::string_view program_of(std::string_view event) {
  if (event == "resumed") return "flex-resume";
  return event == "resume_failed" ? "flex-resume-fail" : "flex-suspend";
}

/// What cannot be told is only missing in the metrics.
void tell_calls(const Log& log, const Session& session, std::string_view program) {
  if (session.calls->empty()) return;
  Result<std::string> state_dir = session.state_dir;
  if (state_dir->empty()) state_dir = find_state_dir(session.config, *session.scheduler);
  const std::array events{session.calls->event(program, SystemClock{}.now())};
  if (state_dir) keep_in_history(*state_dir, events, log);
}

}  // namespace

void log_summary(const Log& log, const Session& session, const Summary& summary) {
  const auto elapsed = std::chrono::steady_clock::now() - summary.started;
  const CloudStats stats = session.cloud->stats();
  log.info(summary.event,
           {{"nodes", fold_hostlist(summary.nodes)},
            {"n", summary.nodes.size()},
            {"done", summary.done},
            {"failed", summary.failed},
            {"calls", stats.calls},
            {"retries", stats.retries},
            {"peak_kib", peak_memory_kib()},
            {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()}});
  tell_calls(log, session, program_of(summary.event));
}

}  // namespace flex
