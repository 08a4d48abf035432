// SPDX-License-Identifier: GPL-2.0-or-later
// The sweeper's HTTP server: /metrics, /status.json, /healthz and the page at /. It serves texts
// that the loop has made; whatever its clients do, no round waits for it.
#pragma once

#include "lib/config/config.h"
#include "lib/core/log.h"
#include "sweeper/http_connections.h"
#include "sweeper/http_rules.h"

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace flex {

/// What is served until the next time.
struct Published {
  std::string status{};   ///< status.json
  std::string metrics{};  ///< in Prometheus' text format
  Health health{};
};

class HttpServer {
 public:
  explicit HttpServer(const Log& log, const HttpLimits& limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Listens as the config says: to be called before each round. What does not work, a port that is
  /// taken, say, is logged once and tried again the next time. Signals must be held.
  void keep_up(const SweeperConfig& config, const std::optional<uid_t>& slurm_user);

  void publish(Published texts);

  /// "127.0.0.1:9762"; empty: it does not listen.
  [[nodiscard]] std::string address() const;

 private:
  class Impl;

  void complain(const std::string& why);

  const Log& log_;
  const HttpLimits limits_;
  std::string complaint_{};  ///< the last one
  std::string key_{};        ///< the settings of the server that runs
  std::shared_ptr<const Published> texts_{};
  std::unique_ptr<Impl> impl_;
};

}  // namespace flex
