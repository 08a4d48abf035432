// SPDX-License-Identifier: GPL-2.0-or-later
// Which calls tell that a permission is held without doing anything (pure). Compute looks at
// permissions before it looks whether a thing is there.
#include "lib/gce/cloud_facts.h"
#include "lib/gce/urls.h"

#include <fmt/format.h>

#include <initializer_list>

namespace flex {
namespace {

/// A name that nobody gives: as long as a name may be.
constexpr std::string_view kNobody =
    "flex-doctor-asks-for-what-is-not-there-and-never-will-be-000000";
static_assert(kNobody.size() == kMaxNameLength);

void add(std::vector<Probe>& probes, std::string_view permission, std::string path) {
  probes.push_back({.permission = std::string(permission), .path = std::move(path)});
}

void add_reads(std::vector<Probe>& probes, const ProbeWish& wish) {
  const MigName group{std::string(kNobody)};
  const std::string few = "maxResults=1";
  add(probes, "compute.instanceGroupManagers.list", groups_path(wish.region) + "?" + few);
  add(probes, "compute.instanceGroupManagers.get", group_path(wish.region, group));
  add(probes, "compute.instances.getSerialPortOutput", serial_path(wish.zone, kNobody));
  add(probes, "compute.regionOperations.get", operation_path(wish.region, kNobody));
  if (wish.has_placement)
    add(probes, "compute.resourcePolicies.list", policies_path(wish.region) + "?" + few);
  if (!wish.has_loose) return;
  add(probes, "compute.instances.list", "/aggregated/instances?" + few);
  add(probes, "compute.regionOperations.list", operations_path(wish.region) + "?" + few);
  add(probes, "compute.zoneOperations.get", zone_operation_path(wish.zone, kNobody));
}

Probe& add_write(std::vector<Probe>& probes,
                 std::string_view permission,
                 std::string method,
                 std::string path,
                 std::string body = {}) {
  probes.push_back({.permission = std::string(permission),
                    .method = std::move(method),
                    .path = std::move(path),
                    .body = std::move(body),
                    .is_write = true});
  return probes.back();
}

/// Each creation has two things wrong with it that no project can have: a template and a zone of
/// that name. Were a VM made all the same, it would be gone by itself in half a minute. Nothing
/// else is wrong with it: what is wrong in itself may be refused before anybody asks who it is.
void add_bulk(std::vector<Probe>& probes, const ProbeWish& wish) {
  Probe& probe = add_write(
      probes,
      "compute.instances.create",
      "POST",
      fmt::format("/regions/{}/instances/bulkInsert", percent_encode(wish.region)),
      fmt::format(R"({{"count":"1","namePattern":"flex-doctor-#",)"
                  R"("sourceInstanceTemplate":"global/instanceTemplates/{0}",)"
                  R"("instanceProperties":{{"scheduling":{{"maxRunDuration":{{"seconds":"30"}},)"
                  R"("instanceTerminationAction":"DELETE"}}}},)"
                  R"("locationPolicy":{{"zones":[{{"zone":"zones/{0}"}}]}}}})",
                  kNobody));
  probe.makes = "the VM flex-doctor-1";
  probe.undo = "gcloud compute instances list --filter='name~^flex-doctor-'";
}

void add_writes(std::vector<Probe>& probes, const ProbeWish& wish) {
  const MigName group{std::string(kNobody)};
  Probe& create =
      add_write(probes,
                "compute.instanceGroupManagers.create",
                "POST",
                groups_path(wish.region),
                fmt::format(R"({{"name":"{0}","baseInstanceName":"flex","targetSize":0,)"
                            R"("versions":[{{"instanceTemplate":"global/instanceTemplates/{0}"}}],)"
                            R"("distributionPolicy":{{"zones":[{{"zone":"zones/{0}"}}]}}}})",
                            kNobody));
  create.makes = fmt::format("the group {}", kNobody);
  create.undo = fmt::format(
      "gcloud compute instance-groups managed delete {} --region={}", kNobody, wish.region);
  add_write(
      probes, "compute.instanceGroupManagers.delete", "DELETE", group_path(wish.region, group));
  add_write(probes,
            "compute.instanceGroupManagers.update",
            "POST",
            request_path(wish.region, group, RequestName{std::string(kNobody)}) + "/cancel");
  add_write(probes, "compute.instances.delete", "DELETE", instance_path(wish.zone, kNobody));
  if (wish.has_loose) add_bulk(probes, wish);
  if (!wish.has_placement) return;
  // A policy of no sort at all.
  Probe& policy = add_write(probes,
                            "compute.resourcePolicies.create",
                            "POST",
                            policies_path(wish.region),
                            fmt::format(R"({{"name":"{}"}})", kNobody));
  policy.makes = fmt::format("the resource policy {}", kNobody);
  policy.undo =
      fmt::format("gcloud compute resource-policies delete {} --region={}", kNobody, wish.region);
  add_write(probes, "compute.resourcePolicies.delete", "DELETE", policy_path(wish.region, kNobody));
}

}  // namespace

std::vector<Probe> permission_probes(const ProbeWish& wish) {
  std::vector<Probe> probes;
  add_reads(probes, wish);
  if (wish.has_writes) add_writes(probes, wish);
  return probes;
}

}  // namespace flex
