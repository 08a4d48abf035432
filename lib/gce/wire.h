// SPDX-License-Identifier: GPL-2.0-or-later
// Compute Engine's JSON to and from our own structs (pure).
//
// Unknown fields and enum values are no error, missing ones have defaults, a wrong type is Internal
// with its path.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/gce/cloud.h"
#include "lib/gce/errors.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// One page of a list. An answer that says itself that it is incomplete is an Error, Retry.
template <class T>
struct Page {
  std::vector<T> items{};
  std::string next{};  ///< token of the next page; empty: the last one
};

// What is read of each reply, as the `fields` parameter says it.
inline constexpr std::string_view kGroupFields =
    "name,id,description,instanceTemplate,versions/instanceTemplate,targetSize,status/isStable,"
    "currentActions,creationTimestamp,resourcePolicies/workloadPolicy,distributionPolicy/zones";
inline constexpr std::string_view kOperationFields =
    "name,zone,status,httpErrorStatusCode,httpErrorMessage,"
    "error/errors(code,message,errorDetails(errorInfo/metadatas,quotaInfo/limitName)),"
    "instancesBulkInsertOperationMetadata/perLocationStatus";
[[nodiscard]] std::string group_page_fields();
[[nodiscard]] std::string request_page_fields();
[[nodiscard]] std::string instance_page_fields();
[[nodiscard]] std::string loose_instance_page_fields();
[[nodiscard]] std::string zone_vm_page_fields(bool with_group);
[[nodiscard]] std::string operation_page_fields();
[[nodiscard]] std::string policy_page_fields();

[[nodiscard]] Result<Group> parse_group(std::string_view text);
[[nodiscard]] Result<Page<Group>> parse_group_page(std::string_view text);
[[nodiscard]] Result<Page<ResizeRequest>> parse_request_page(std::string_view text,
                                                             const MigName& group);
[[nodiscard]] Result<Page<Instance>> parse_instance_page(std::string_view text);
/// VMs of a zone.
[[nodiscard]] Result<Page<Instance>> parse_loose_instance_page(std::string_view text);
[[nodiscard]] Result<Page<ZoneVm>> parse_zone_vm_page(std::string_view text);
/// Names of a region's zones.
[[nodiscard]] Result<std::vector<std::string>> parse_region_zones(std::string_view text);
/// Of a bulkInsert that failed, the error's message also says how many VMs came in which zone.
[[nodiscard]] Result<Operation> parse_operation(std::string_view text);
[[nodiscard]] Result<Page<Operation>> parse_operation_page(std::string_view text);
/// Only workload policies; a region has others, too.
[[nodiscard]] Result<Page<Policy>> parse_policy_page(std::string_view text);
/// The text on a VM's console.
[[nodiscard]] Result<std::string> parse_serial_output(std::string_view text);

/// The body of a reply that is not 2xx, whatever is in it.
[[nodiscard]] Complaint parse_complaint(int http_status, std::string_view text);

[[nodiscard]] RequestState parse_request_state(std::string_view text);
[[nodiscard]] InstanceStatus parse_instance_status(std::string_view text);
[[nodiscard]] InstanceAction parse_instance_action(std::string_view text);

/// What bodies name other resources by.
struct Home {
  std::string_view project;
  std::string_view region;
};

[[nodiscard]] std::string group_body(const GroupSpec& spec, const Home& home);
[[nodiscard]] std::string request_body(const RequestSpec& spec);
[[nodiscard]] std::string create_instances_body(std::span<const NodeName> nodes);
[[nodiscard]] std::string bulk_body(const BulkSpec& spec, const Home& home);
[[nodiscard]] std::string policy_body(const PolicySpec& spec);
/// `instances`: either all names or all URLs.
[[nodiscard]] std::string delete_instances_body(std::span<const std::string> instances);

}  // namespace flex
