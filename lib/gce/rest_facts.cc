// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/caller.h"
#include "lib/gce/cloud_facts.h"
#include "lib/gce/credentials.h"
#include "lib/gce/listing.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace flex {
namespace {

/// Passes everything on, and looks at the clock of every answer.
class ClockWatch final : public HttpClient {
 public:
  explicit ClockWatch(std::unique_ptr<HttpClient> http) : http_(std::move(http)) {}

  void send(HttpRequest request, Answer answer) override {
    http_->send(std::move(request), [this, answer = std::move(answer)](Result<HttpResponse> reply) {
      if (reply && reply->date) {
        using std::chrono::system_clock;
        const auto here = std::chrono::floor<std::chrono::seconds>(system_clock::now());
        skew_ = here - *reply->date;
      }
      answer(std::move(reply));
    });
  }

  void after(std::chrono::milliseconds delay, std::function<void()> what) override {
    http_->after(delay, std::move(what));
  }

  void run(std::chrono::steady_clock::time_point deadline) override { http_->run(deadline); }

  [[nodiscard]] std::chrono::steady_clock::time_point now() const override { return http_->now(); }

  [[nodiscard]] std::optional<Seconds> skew() const { return skew_; }

  /// What still waits is forgotten.
  void close() { http_.reset(); }

 private:
  std::unique_ptr<HttpClient> http_;
  std::optional<Seconds> skew_{};
};

/// Where a template is, below the project; empty: in another project.
std::string template_path(const std::string& given, std::string_view project) {
  constexpr std::string_view kProjects = "projects/";
  const std::size_t at = given.find(kProjects);
  std::string_view rest = given;
  if (at != std::string::npos) {
    rest = rest.substr(at + kProjects.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos || rest.substr(0, slash) != project) return {};
    rest = rest.substr(slash + 1);
  }
  const std::string path(rest);
  return path.find('/') == std::string::npos ? "/global/instanceTemplates/" + percent_encode(path)
                                             : "/" + percent_encode(path, "/");
}

class RestFacts final : public CloudFacts {
 public:
  RestFacts(const CloudSettings& settings,
            std::string endpoint,
            Credentials credentials,
            std::unique_ptr<HttpClient> http)
      : region_(settings.region),
        http_(std::move(http)),
        backoff_(http_, settings.retry, settings.run_timeout),
        tokens_(http_, backoff_, std::move(credentials)),
        project_(settings.project),
        endpoint_(std::move(endpoint)),
        call_timeout_(settings.call_timeout),
        caller_(make_caller()) {}

  RestFacts(const RestFacts&) = delete;
  RestFacts& operator=(const RestFacts&) = delete;

  ~RestFacts() override { http_.close(); }

  void fetch_token(Then<Done> then) override {
    http_.after(std::chrono::milliseconds{0}, [this, then = std::move(then)] {
      tokens_.get([this, then](const Result<std::string>& token) {
        if (!token) return then(token.error());
        if (!project_.empty()) return then(Done{});
        tokens_.fetch_project([this, then](const Result<std::string>& project) {
          if (!project) return then(project.error());
          project_ = *project;
          then(Done{});
        });
      });
    });
  }

  void fetch_project(Then<ProjectFacts> then) override {
    get<ProjectFacts>(
        "?fields=name,defaultServiceAccount", "project", parse_project, std::move(then));
  }

  void fetch_region(Then<RegionFacts> then) override {
    get<RegionFacts>(fmt::format("/regions/{}?fields=name,status,zones,quotas(metric,limit,usage)",
                                 percent_encode(region_)),
                     fmt::format("region '{}'", region_),
                     parse_region,
                     std::move(then));
  }

  void fetch_zone(const std::string& zone, Then<ZoneFacts> then) override {
    get<ZoneFacts>(fmt::format("/zones/{}?fields=name,region,status", percent_encode(zone)),
                   fmt::format("zone '{}'", zone),
                   parse_zone,
                   std::move(then));
  }

  void fetch_machine_type(const std::string& zone,
                          const std::string& type,
                          Then<MachineTypeFacts> then) override {
    get<MachineTypeFacts>(fmt::format("/zones/{}/machineTypes/{}"
                                      "?fields=name,guestCpus,accelerators,deprecated/state",
                                      percent_encode(zone),
                                      percent_encode(type)),
                          fmt::format("machine type '{}' in zone '{}'", type, zone),
                          parse_machine_type,
                          std::move(then));
  }

  void fetch_template(const std::string& given, Then<TemplateFacts> then) override {
    std::string doing = fmt::format("template '{}'", given);
    const std::string path = template_path(given, project_);
    if (path.empty())
      return caller_.later([doing, then = std::move(then)] {
        then(Error{ErrorKind::Invalid, doing + ": it is another project's", "OTHER_PROJECT"});
      });
    get<TemplateFacts>(path, doing, parse_template, std::move(then));
  }

  void fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) override {
    fetch_all<Group>(caller_,
                     {.path = groups_path(region_),
                      .query = {{"filter", name_filter(prefix)},
                                {"maxResults", "500"},
                                {"fields", group_page_fields()}},
                      .doing = "listing groups",
                      .parse = parse_group_page,
                      .then = std::move(then)});
  }

  void fetch_group_errors(const MigName& group, Then<std::vector<std::string>> then) override {
    get<std::vector<std::string>>(
        group_path(region_, group) + "/listErrors?maxResults=20&fields=items/error/message",
        fmt::format("errors of group '{}'", group),
        parse_group_errors,
        std::move(then));
  }

  void probe(const Probe& probe, Then<Done> then) override {
    Call call{.method = probe.method,
              .path = probe.path,
              .doing = probe.permission,
              .is_write = probe.is_write};
    if (!probe.body.empty()) call.body = [body = probe.body](const std::string&) { return body; };
    caller_.call(
        std::move(call), [probe, then = std::move(then)](const Result<std::string>& reply) {
          if (reply && !probe.is_write) return then(Done{});
          if (reply)
            return then(Error{
                ErrorKind::Internal,
                fmt::format(
                    "{} {} was accepted, though it names what cannot be", probe.method, probe.path),
                "ACCEPTED"});
          // It was allowed to ask, and told that there is no such thing.
          const ErrorKind kind = reply.error().kind;
          const bool is_held = kind == ErrorKind::NotFound || kind == ErrorKind::Invalid ||
                               kind == ErrorKind::Precondition || kind == ErrorKind::AlreadyExists;
          then(is_held ? Result<Done>(Done{}) : Result<Done>(reply.error()));
        });
  }

  void run() override { http_.run(backoff_.deadline()); }

  [[nodiscard]] std::optional<Seconds> clock_skew() const override { return http_.skew(); }

 private:
  Caller make_caller() {
    return Caller({.endpoint = endpoint_, .project = project_, .call_timeout = call_timeout_},
                  http_,
                  backoff_,
                  tokens_);
  }

  template <class T, class Parse>
  void get(std::string path, std::string doing, const Parse& parse, Then<T> then) {
    Call call{.path = std::move(path), .doing = doing};
    caller_.call(std::move(call),
                 [doing, parse, then = std::move(then)](const Result<std::string>& reply) {
                   if (!reply) return then(reply.error());
                   auto parsed = parse(*reply);
                   if (!parsed) return then(std::move(parsed.error()).in(doing));
                   then(std::move(parsed));
                 });
  }

  std::string region_;
  ClockWatch http_;
  Backoff backoff_;
  Tokens tokens_;
  std::string project_;
  std::string endpoint_;
  std::chrono::milliseconds call_timeout_;
  Caller caller_;
};

}  // namespace

Result<std::unique_ptr<CloudFacts>> open_cloud_facts(const CloudSettings& settings,
                                                     std::unique_ptr<HttpClient> http) {
  auto endpoint = parse_endpoint(settings.endpoint);
  if (!endpoint) return std::move(endpoint.error());
  auto credentials = load_credentials(settings.credentials, settings.slurm_user);
  if (!credentials) return std::move(credentials.error()).in("credentials");
  return std::unique_ptr<CloudFacts>(std::make_unique<RestFacts>(
      settings, *std::move(endpoint), *std::move(credentials), std::move(http)));
}

Result<std::unique_ptr<CloudFacts>> open_cloud_facts(const CloudSettings& settings) {
  auto http = make_cloud_http(settings);
  if (!http) return std::move(http.error());
  return open_cloud_facts(settings, *std::move(http));
}

}  // namespace flex
