// SPDX-License-Identifier: GPL-2.0-or-later
// cpp-httplib, from 0.11 to 0.41.
#include "sweeper/http_server.h"

#include "lib/config/shapes.h"
#include "lib/core/trust.h"
#include "sweeper/http_connections.h"
#include "sweeper/page/page.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <semaphore>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

namespace flex {

namespace {

constexpr std::size_t kThreads = 4;
/// Connections that wait for a thread; more of them wait in the kernel.
constexpr std::ptrdiff_t kMostConnections = 32;
constexpr std::size_t kMostPayload = 1024;
constexpr std::size_t kMostToken = 4096;
/// Between two reads; how long it may take as a whole is the reaper's to say.
constexpr time_t kReadSeconds = 5;

/// httplib's own pool takes any number of connections.
class BoundedPool : public httplib::TaskQueue {
  // Some releases answer whether it was taken.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));

 public:
  explicit BoundedPool(HttpReaper& reaper) : reaper_(reaper) {}

  Taken enqueue(std::function<void()> work) override {
    reaper_.wake();
    room_.acquire();
    return pool_.enqueue([this, work = std::move(work)] {
      work();
      room_.release();
    });
  }

  void shutdown() override { pool_.shutdown(); }

 private:
  HttpReaper& reaper_;
  std::counting_semaphore<kMostConnections> room_{kMostConnections};
  httplib::ThreadPool pool_{kThreads};
};

httplib::Headers security_headers() {
  return {
      {"Content-Security-Policy",
       fmt::format("default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data:; "
                   "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'",
                   status_page_scripts().empty() ? "'none'" : status_page_scripts())},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
}

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

Result<std::string> load_token(const std::string& path, const std::optional<uid_t>& slurm_user) {
  const std::string doing = fmt::format("token file '{}'", path);
  const auto text = read_trusted_file(path, slurm_user, kMostToken, Readers::Owner);
  if (!text) return text.error().in(doing);
  const std::string_view token = token_in(*text);
  if (token.empty())
    return Error{ErrorKind::Invalid,
                 doing +
                     ": a token is one line of at least 16 visible characters, "
                     "such as 'openssl rand -hex 32' prints"};
  return std::string(token);
}

}  // namespace

/// One listening server, from its start to its end.
class HttpServer::Impl {
 public:
  Impl(std::string token, const HttpLimits& limits) : token_(std::move(token)), reaper_(limits) {
    http_.new_task_queue = [this] { return new BoundedPool(reaper_); };
    // A thread serves one connection, so none is kept open.
    http_.set_keep_alive_max_count(1);
    http_.set_keep_alive_timeout(kReadSeconds);
    http_.set_read_timeout(kReadSeconds);
    http_.set_write_timeout(kReadSeconds);
    http_.set_payload_max_length(kMostPayload);
    http_.set_default_headers(security_headers());
    // Not httplib's own, with which two servers share a port.
    http_.set_socket_options([](int fd) {
      const int yes = 1;
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    add_routes();
  }

  ~Impl() {
    if (!thread_.joinable()) return;
    http_.stop();
    while (!has_ended_) {
      visit_connections(port_, [](int fd) { ::shutdown(fd, SHUT_RDWR); });
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    thread_.join();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<Done> listen(const ListenAddress& at) {
    errno = 0;
    port_ = at.port == 0                           ? http_.bind_to_any_port(at.host)
            : http_.bind_to_port(at.host, at.port) ? at.port
                                                   : -1;
    if (port_ < 0)
      return Error{
          ErrorKind::Retry,
          fmt::format("cannot listen on {}:{}: {}",
                      at.host,
                      at.port,
                      errno == 0 ? "no such address" : std::generic_category().message(errno))};
    const bool is_v6 = at.host.find(':') != std::string::npos;
    address_ = fmt::format("{}{}{}:{}", is_v6 ? "[" : "", at.host, is_v6 ? "]" : "", port_);
    try {
      reaper_.start(port_);
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return Error{ErrorKind::Retry, fmt::format("no thread to listen with: {}", error.what())};
    }
    // stop() does nothing to a server that has not begun.
    while (!http_.is_running() && !has_ended_)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return Done{};
  }

  void publish(std::shared_ptr<const Published> texts) {
    const std::lock_guard lock(mutex_);
    texts_ = std::move(texts);
  }

  [[nodiscard]] bool has_ended() const { return has_ended_; }

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;

  void run() {
    try {
      http_.listen_after_bind();
    } catch (const std::exception&) {
      // Started anew before the next round.
    }
    has_ended_ = true;
  }

  void add_routes() {
    http_.set_pre_routing_handler(
        [this](const Request& request, Response& response) { return admit(request, response); });
    http_.Get("/metrics", [this](const Request&, Response& response) {
      response.set_content(texts()->metrics, "text/plain; version=0.0.4; charset=utf-8");
    });
    http_.Get("/status.json", [this](const Request&, Response& response) {
      response.set_content(texts()->status, "application/json; charset=utf-8");
    });
    http_.Get("/healthz", [this](const Request& request, Response& response) {
      Verdict health = health_of(texts()->health, wall_clock());
      const bool may_know =
          token_.empty() || is_bearer(request.get_header_value("Authorization"), token_);
      // What is wrong names hosts, projects and accounts.
      if (!may_know) health.why = health.status == 200 ? "ok" : "not ok";
      answer(response, health);
    });
    http_.Get("/", [](const Request&, Response& response) {
      response.set_content(std::string(status_page()), "text/html; charset=utf-8");
    });
    http_.set_error_handler([](const Request&, Response& response) {
      if (response.body.empty()) answer(response, {response.status, "no such page"});
    });
  }

  httplib::Server::HandlerResponse admit(const Request& request, Response& response) {
    // A text is served whole: httplib would make each of thousands of ranges a part of its own, in
    // memory. It has read the header before anybody was asked.
    const_cast<Request&>(request).ranges.clear();
    const Verdict verdict = judge({.method = request.method,
                                   .path = request.path,
                                   .host = request.get_header_value("Host"),
                                   .authorization = request.get_header_value("Authorization")},
                                  token_);
    if (verdict.why.empty()) return httplib::Server::HandlerResponse::Unhandled;
    if (verdict.status == 401) response.set_header("WWW-Authenticate", "Bearer");
    if (verdict.status == 405) response.set_header("Allow", "GET, HEAD");
    answer(response, verdict);
    return httplib::Server::HandlerResponse::Handled;
  }

  static void answer(Response& response, const Verdict& verdict) {
    response.status = verdict.status;
    response.set_content(verdict.why + "\n", "text/plain; charset=utf-8");
  }

  std::shared_ptr<const Published> texts() {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

  const std::string token_;
  HttpReaper reaper_;
  httplib::Server http_{};
  int port_ = -1;
  std::string address_{};
  std::atomic<bool> has_ended_ = false;
  std::thread thread_{};
  std::mutex mutex_{};
  std::shared_ptr<const Published> texts_ = std::make_shared<Published>();
};

HttpServer::HttpServer(const Log& log, const HttpLimits& limits)
    : log_(log), limits_(limits), texts_(std::make_shared<Published>()) {}

HttpServer::~HttpServer() = default;

void HttpServer::keep_up(const SweeperConfig& config, const std::optional<uid_t>& slurm_user) {
  const auto at = parse_listen(config.listen);
  if (!at) return impl_.reset();
  Result<std::string> token = std::string{};
  if (!config.listen_token_file.empty()) token = load_token(config.listen_token_file, slurm_user);
  if (!token) {
    impl_.reset();
    return complain(token.error().what);
  }
  const std::string key = fmt::format("{}\n{}", config.listen, *token);
  if (impl_ && !impl_->has_ended() && key == key_) return;
  impl_.reset();
  auto next = std::make_unique<Impl>(*token, limits_);
  next->publish(texts_);
  if (const auto listening = next->listen(*at); !listening) return complain(listening.error().what);
  impl_ = std::move(next);
  key_ = key;
  complaint_.clear();
  log_.info("http_listening",
            {{"address", impl_->address()}, {"token", token->empty() ? "no" : "yes"}});
}

void HttpServer::complain(const std::string& why) {
  if (why == complaint_) return;
  complaint_ = why;
  log_.warning("http_off", {{"why", why}, {"then", "tried again before each round"}});
}

void HttpServer::publish(Published texts) {
  texts_ = std::make_shared<const Published>(std::move(texts));
  if (impl_) impl_->publish(texts_);
}

std::string HttpServer::address() const {
  return impl_ && !impl_->has_ended() ? impl_->address() : std::string{};
}

}  // namespace flex
