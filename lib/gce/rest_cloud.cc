// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/rest_cloud.h"

#include "lib/gce/caller.h"
#include "lib/gce/credentials.h"
#include "lib/gce/curl_http.h"
#include "lib/gce/gather.h"
#include "lib/gce/listing.h"
#include "lib/gce/operation.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace flex {
namespace {

constexpr std::string_view kPageSize = "500";

/// The end of a text, without half a character in front.
std::string keep_end(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t from = text.size() - limit;
  const auto is_inside = [&] { return (static_cast<unsigned char>(text[from]) & 0xc0U) == 0x80U; };
  while (from < text.size() && is_inside()) ++from;
  text.erase(0, from);
  return text;
}

Error no_zone(const std::string& doing) {
  return {ErrorKind::Invalid, doing + ": it has no URL with a zone", "NO_ZONE"};
}

class RestCloud final : public Cloud {
 public:
  RestCloud(const CloudSettings& settings,
            std::string endpoint,
            Credentials credentials,
            std::unique_ptr<HttpClient> http)
      : region_(settings.region),
        http_(std::move(http)),
        backoff_(*http_, settings.retry, settings.run_timeout),
        tokens_(*http_, backoff_, std::move(credentials)),
        caller_({.endpoint = std::move(endpoint),
                 .project = settings.project,
                 .call_timeout = settings.call_timeout},
                *http_,
                backoff_,
                tokens_) {}

  RestCloud(const RestCloud&) = delete;
  RestCloud& operator=(const RestCloud&) = delete;

  ~RestCloud() override {
    // What still waits there points to the members below it.
    http_.reset();
  }

  void fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) override {
    fetch_all<Group>(caller_,
                     {.name = "regionInstanceGroupManagers.list",
                      .path = groups_path(region_),
                      .query = {{"filter", name_filter(prefix)},
                                {"maxResults", std::string(kPageSize)},
                                {"fields", group_page_fields()}},
                      .doing = "listing groups",
                      .parse = parse_group_page,
                      .then = [prefix, then = std::move(then)](Result<std::vector<Group>> groups) {
                        // The filter is a pattern; the prefix is not.
                        if (groups)
                          std::erase_if(*groups, [&](const Group& group) {
                            return !group.name.text.starts_with(prefix);
                          });
                        then(std::move(groups));
                      }});
  }

  void fetch_group(const MigName& group, Then<Group> then) override {
    std::string doing = fmt::format("group '{}'", group);
    Call call{
        .name = "regionInstanceGroupManagers.get",
        .path = with_query(group_path(region_, group), {{"fields", std::string(kGroupFields)}}),
        .doing = doing};
    caller_.call(std::move(call),
                 [doing, then = std::move(then)](const Result<std::string>& reply) {
                   if (!reply) return then(reply.error());
                   auto parsed = parse_group(*reply);
                   if (!parsed) return then(std::move(parsed.error()).in(doing));
                   then(std::move(parsed));
                 });
  }

  void fetch_requests(const MigName& group, Then<std::vector<ResizeRequest>> then) override {
    fetch_all<ResizeRequest>(
        caller_,
        {.name = "regionInstanceGroupManagerResizeRequests.list",
         .path = requests_path(region_, group),
         .query = {{"maxResults", std::string(kPageSize)}, {"fields", request_page_fields()}},
         .doing = fmt::format("listing requests of group '{}'", group),
         .parse = [group](std::string_view text) { return parse_request_page(text, group); },
         .then = std::move(then)});
  }

  void fetch_instances(const MigName& group, Then<std::vector<Instance>> then) override {
    // All in one answer unless somebody has made the group paginated.
    fetch_all<Instance>(
        caller_,
        {.name = "regionInstanceGroupManagers.listManagedInstances",
         .method = "POST",
         .path = group_path(region_, group) + "/listManagedInstances",
         .query = {{"maxResults", std::string(kPageSize)}, {"fields", instance_page_fields()}},
         .doing = fmt::format("listing instances of group '{}'", group),
         .parse = parse_instance_page,
         .then = std::move(then)});
  }

  void fetch_vms(const VmSelection& which, Then<std::vector<ZoneVm>> then) override {
    if (which.zone.empty()) return fetch_vms_of_region(which, std::move(then));
    std::string filter;
    if (!which.name_pattern.empty()) filter = fmt::format("name eq \"{}\"", which.name_pattern);
    fetch_all<ZoneVm>(caller_,
                      {.name = "instances.list",
                       .path = instances_path(which.zone),
                       .query = {{"filter", std::move(filter)},
                                 {"maxResults", std::string(kPageSize)},
                                 {"fields", zone_vm_page_fields(which.with_group)}},
                       .doing = fmt::format("listing VMs of zone '{}'", which.zone),
                       .parse = parse_zone_vm_page,
                       .then = std::move(then)});
  }

  void fetch_loose_instances(const std::string& cluster,
                             const std::vector<std::string>& zones,
                             Then<std::vector<Instance>> then) override {
    if (!zones.empty()) return fetch_loose_of(cluster, zones, std::move(then));
    fetch_zones([this, cluster, then = std::move(then)](Result<std::vector<std::string>> all) {
      if (!all) return then(std::move(all.error()));
      fetch_loose_of(cluster, *all, then);
    });
  }

  void fetch_bulk_operations(Then<std::vector<Operation>> then) override {
    fetch_all<Operation>(
        caller_,
        {.name = "regionOperations.list",
         .path = operations_path(region_),
         .query = {{"filter", "(operationType = \"bulkInsert\") AND (status != \"DONE\")"},
                   {"maxResults", std::string(kPageSize)},
                   {"fields", operation_page_fields()}},
         .doing = "listing bulkInsert operations",
         .parse = parse_operation_page,
         .then = [then = std::move(then)](Result<std::vector<Operation>> operations) {
           // It may have ended while the list was made.
           if (operations)
             std::erase_if(*operations, [](const Operation& each) { return each.is_done; });
           then(std::move(operations));
         }});
  }

  void fetch_policies(const std::string& prefix, Then<std::vector<Policy>> then) override {
    fetch_all<Policy>(caller_,
                      {.name = "resourcePolicies.list",
                       .path = policies_path(region_),
                       .query = {{"filter", name_filter(prefix)},
                                 {"maxResults", std::string(kPageSize)},
                                 {"fields", policy_page_fields()}},
                       .doing = "listing workload policies",
                       .parse = parse_policy_page,
                       .then = [prefix, then = std::move(then)](Result<std::vector<Policy>> found) {
                         if (found)
                           std::erase_if(*found, [&](const Policy& policy) {
                             return !policy.name.starts_with(prefix);
                           });
                         then(std::move(found));
                       }});
  }

  void fetch_serial_output(const Instance& instance, Then<std::string> then) override {
    std::string doing = fmt::format("console of '{}'", instance.name);
    const std::string_view zone = zone_of(instance.url);
    if (zone.empty()) {
      return caller_.later([doing, then = std::move(then)] { then(no_zone(doing)); });
    }
    // A start below 0 counts from the end.
    Call call{.name = "instances.getSerialPortOutput",
              .path = with_query(
                  serial_path(zone, last_part(instance.url)),
                  {{"start", fmt::format("-{}", kMaxSerialOutput)}, {"fields", "contents"}}),
              .doing = doing};
    caller_.call(std::move(call),
                 [doing, then = std::move(then)](const Result<std::string>& reply) {
                   if (!reply) return then(reply.error());
                   auto text = parse_serial_output(*reply);
                   if (!text) return then(std::move(text.error()).in(doing));
                   then(keep_end(*std::move(text), kMaxSerialOutput));
                 });
  }

  void wait_operation(const Operation& operation, Then<Done> then) override {
    wait_for(caller_, region_, operation, std::move(then));
  }

  void insert_group(const GroupSpec& spec, Then<Operation> then) override {
    write({.name = "regionInstanceGroupManagers.insert",
           .method = "POST",
           .path = groups_path(region_),
           .doing = fmt::format("creating group '{}'", spec.name),
           .body =
               [this, spec](const std::string& project) {
                 return group_body(spec, {project, region_});
               }},
          std::move(then));
  }

  void insert_request(const RequestSpec& spec, Then<Operation> then) override {
    write({.name = "regionInstanceGroupManagerResizeRequests.insert",
           .method = "POST",
           .path = requests_path(region_, spec.group),
           .doing = fmt::format("creating request '{}' in group '{}'", spec.name, spec.group),
           .body = [body = request_body(spec)](const std::string&) { return body; }},
          std::move(then));
  }

  void create_instances(const MigName& group,
                        std::span<const NodeName> nodes,
                        Then<Operation> then) override {
    if (refuses(nodes.size(), "creating", then)) return;
    write({.name = "regionInstanceGroupManagers.createInstances",
           .method = "POST",
           .path = group_path(region_, group) + "/createInstances",
           .doing = fmt::format("creating {} instances in group '{}'", nodes.size(), group),
           .body = [body = create_instances_body(nodes)](const std::string&) { return body; }},
          std::move(then));
  }

  void bulk_insert(const BulkSpec& spec, Then<Operation> then) override {
    if (refuses(spec.nodes.size(), "creating", then)) return;
    write({.name = "regionInstances.bulkInsert",
           .method = "POST",
           .path = fmt::format("/regions/{}/instances/bulkInsert", percent_encode(region_)),
           .doing = fmt::format("creating {} VMs", spec.nodes.size()),
           .body =
               [this, spec](const std::string& project) {
                 return bulk_body(spec, {project, region_});
               }},
          std::move(then));
  }

  void insert_policy(const PolicySpec& spec, Then<Operation> then) override {
    write({.name = "resourcePolicies.insert",
           .method = "POST",
           .path = policies_path(region_),
           .doing = fmt::format("creating workload policy '{}'", spec.name),
           .body = [body = policy_body(spec)](const std::string&) { return body; }},
          std::move(then));
  }

  void delete_policy(const std::string& policy, Then<Operation> then) override {
    write({.name = "resourcePolicies.delete",
           .method = "DELETE",
           .path = policy_path(region_, policy),
           .doing = fmt::format("deleting workload policy '{}'", policy)},
          std::move(then));
  }

  void cancel_request(const MigName& group,
                      const RequestName& request,
                      Then<Operation> then) override {
    write({.name = "regionInstanceGroupManagerResizeRequests.cancel",
           .method = "POST",
           .path = request_path(region_, group, request) + "/cancel",
           .doing = fmt::format("cancelling request '{}' of group '{}'", request, group)},
          std::move(then));
  }

  void delete_instances(const MigName& group,
                        std::span<const Instance> instances,
                        Then<Operation> then) override {
    if (refuses(instances.size(), "deleting", then)) return;
    if (group.empty()) return delete_loose(instances, std::move(then));
    std::vector<std::string> urls;
    std::vector<std::string> names;
    for (const Instance& instance : instances) {
      if (instance.url.empty())
        names.push_back(instance.name.text);
      else
        urls.push_back(instance.url);
    }
    if (urls.empty()) return delete_listed(group, names, std::move(then));
    if (names.empty()) return delete_listed(group, urls, std::move(then));
    const Then<Operation> both = join(2, std::move(then));
    delete_listed(group, urls, both);
    delete_listed(group, names, both);
  }

  void delete_request(const MigName& group,
                      const RequestName& request,
                      Then<Operation> then) override {
    write({.name = "regionInstanceGroupManagerResizeRequests.delete",
           .method = "DELETE",
           .path = request_path(region_, group, request),
           .doing = fmt::format("deleting request '{}' of group '{}'", request, group)},
          std::move(then));
  }

  void delete_group(const MigName& group, Then<Operation> then) override {
    write({.name = "regionInstanceGroupManagers.delete",
           .method = "DELETE",
           .path = group_path(region_, group),
           .doing = fmt::format("deleting group '{}'", group)},
          std::move(then));
  }

  void after(std::chrono::milliseconds delay, std::function<void()> what) override {
    http_->after(delay, std::move(what));
  }

  void run() override { http_->run(backoff_.deadline()); }

  void set_deadline(std::chrono::steady_clock::time_point deadline) override {
    backoff_.set_deadline(deadline);
  }

  [[nodiscard]] CloudStats stats() const override { return caller_.stats(); }

  void set_call_observer(CallObserver observer) override {
    caller_.set_observer(std::move(observer));
  }

 private:
  /// The region's, which are read once.
  void fetch_zones(Then<std::vector<std::string>> then) {
    if (!zones_.empty()) return caller_.later([this, then = std::move(then)] { then(zones_); });
    std::string doing = fmt::format("zones of region '{}'", region_);
    caller_.call({.name = "regions.get",
                  .path = with_query(fmt::format("/regions/{}", percent_encode(region_)),
                                     {{"fields", "zones"}}),
                  .doing = doing},
                 [this, doing, then = std::move(then)](const Result<std::string>& reply) {
                   if (!reply) return then(reply.error());
                   auto zones = parse_region_zones(*reply);
                   if (zones && zones->empty())
                     zones = Error{ErrorKind::Internal, "there are none", "BAD_REPLY"};
                   if (!zones) return then(std::move(zones.error()).in(doing));
                   zones_ = *zones;
                   then(std::move(zones));
                 });
  }

  /// All zones or an error.
  void fetch_vms_of_region(VmSelection which, Then<std::vector<ZoneVm>> then) {
    fetch_zones([this, which = std::move(which), then = std::move(then)](
                    Result<std::vector<std::string>> zones) mutable {
      if (!zones) return then(std::move(zones.error()));
      const auto part = gather(zones->size(), std::move(then));
      for (const std::string& zone : *zones) {
        which.zone = zone;
        fetch_vms(which, part);
      }
    });
  }

  /// The same for VMs that are in no group.
  void fetch_loose_of(const std::string& cluster,
                      const std::vector<std::string>& zones,
                      Then<std::vector<Instance>> then) {
    const auto part = gather(zones.size(), std::move(then));
    for (const std::string& zone : zones) {
      fetch_all<Instance>(caller_,
                          {.name = "instances.list",
                           .path = instances_path(zone),
                           .query = {{"filter", description_filter(ownership_mark(cluster, ""))},
                                     {"maxResults", std::string(kPageSize)},
                                     {"fields", loose_instance_page_fields()}},
                           .doing = fmt::format("listing VMs without a group in zone '{}'", zone),
                           .parse = parse_loose_instance_page,
                           .then = [part, cluster](Result<std::vector<Instance>> vms) {
                             if (vms)
                               std::erase_if(*vms, [&](const Instance& vm) {
                                 return !owned_nodeset(vm.description, cluster);
                               });
                             part(std::move(vms));
                           }});
    }
  }

  void write(Call call, Then<Operation> then) {
    call.path = with_query(std::move(call.path), {{"fields", std::string(kOperationFields)}});
    call.is_write = true;
    std::string doing = call.doing;
    caller_.call(std::move(call),
                 [doing, then = std::move(then)](const Result<std::string>& reply) {
                   if (!reply) return then(reply.error());
                   auto operation = parse_operation(*reply);
                   if (!operation) return then(std::move(operation.error()).in(doing));
                   then(std::move(operation));
                 });
  }

  void delete_listed(const MigName& group,
                     const std::vector<std::string>& instances,
                     Then<Operation> then) {
    write({.name = "regionInstanceGroupManagers.deleteInstances",
           .method = "POST",
           .path = group_path(region_, group) + "/deleteInstances",
           .doing = fmt::format("deleting {} instances of group '{}'", instances.size(), group),
           .body = [body = delete_instances_body(instances)](const std::string&) { return body; }},
          std::move(then));
  }

  void delete_loose(std::span<const Instance> instances, Then<Operation> then) {
    const Then<Operation> all = join(instances.size(), std::move(then));
    for (const Instance& instance : instances) {
      std::string doing = fmt::format("deleting VM '{}'", instance.name);
      const std::string_view zone = zone_of(instance.url);
      if (zone.empty()) {
        caller_.later([all, doing] { all(no_zone(doing)); });
        continue;
      }
      write({.name = "instances.delete",
             .method = "DELETE",
             .path = instance_path(zone, last_part(instance.url)),
             .doing = std::move(doing)},
            [all](Result<Operation> answer) {
              const bool is_gone = !answer && answer.error().kind == ErrorKind::NotFound;
              all(is_gone ? Result<Operation>(Operation{.is_done = true}) : std::move(answer));
            });
    }
  }

  /// Answers what is no call at all: too many at once, or none.
  bool refuses(std::size_t count, std::string_view doing, const Then<Operation>& then) {
    if (count > 0 && count <= kMaxRequestSize) return false;
    caller_.later([then, count, doing = std::string(doing)] {
      if (count == 0) return then(Operation{.is_done = true});
      then(Error{ErrorKind::Invalid,
                 fmt::format("{} {} instances: at most {} at once", doing, count, kMaxRequestSize),
                 "TOO_MANY"});
    });
    return true;
  }

  /// A `then` for several calls: it answers once, after the last, with the first error if there was
  /// one, else with the first operation (one that is under way, if any is).
  static Then<Operation> join(std::size_t count, Then<Operation> then) {
    struct Gathered {
      std::size_t left;
      std::optional<Result<Operation>> answer;
    };

    auto gathered = std::make_shared<Gathered>(Gathered{count, {}});
    return [gathered, then = std::move(then)](Result<Operation> answer) {
      auto& kept = gathered->answer;
      const bool is_kept_good = kept && *kept;
      if (!kept || (is_kept_good && !answer) ||
          (is_kept_good && (*kept)->is_done && answer && !answer->is_done))
        kept = std::move(answer);
      if (--gathered->left == 0) then(*std::move(kept));
    };
  }

  std::string region_;
  std::vector<std::string> zones_{};  ///< of the region; empty: not known yet
  std::unique_ptr<HttpClient> http_;
  Backoff backoff_;
  Tokens tokens_;
  Caller caller_;
};

}  // namespace

Result<std::unique_ptr<Cloud>> open_cloud(const CloudSettings& settings,
                                          std::unique_ptr<HttpClient> http) {
  auto endpoint = parse_endpoint(settings.endpoint);
  if (!endpoint) return std::move(endpoint.error());
  auto credentials = load_credentials(settings.credentials, settings.slurm_user);
  if (!credentials) return std::move(credentials.error()).in("credentials");
  return std::unique_ptr<Cloud>(std::make_unique<RestCloud>(
      settings, *std::move(endpoint), *std::move(credentials), std::move(http)));
}

Result<std::unique_ptr<HttpClient>> make_cloud_http(const CloudSettings& settings) {
  CurlSettings curl{.max_in_flight = settings.max_in_flight,
                    .plain_http_hosts = {"169.254.169.254", "metadata.google.internal"}};
  if (const auto metadata = parse_origin("http://" + metadata_host()))
    curl.plain_http_hosts.push_back(metadata->host);
  return make_curl_http(std::move(curl));
}

Result<std::unique_ptr<Cloud>> open_cloud(const CloudSettings& settings) {
  auto http = make_cloud_http(settings);
  if (!http) return std::move(http.error());
  return open_cloud(settings, *std::move(http));
}

}  // namespace flex
