// SPDX-License-Identifier: GPL-2.0-or-later
// JSON of what only the doctor reads (pure).
#include "lib/gce/cloud_facts.h"
#include "lib/gce/json_view.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire_document.h"

#include <algorithm>

namespace flex {
namespace {

/// "tier.zone/…/nvidia-h100" and "nvidia-h100" are the same.
std::string name_in(const JsonView& view, std::string_view key) {
  return std::string(last_part(view.text(key)));
}

std::vector<std::string> names_in(const JsonView& view, std::string_view key) {
  std::vector<std::string> names;
  view.texts(key, [&](const std::string& url) { names.emplace_back(last_part(url)); });
  return names;
}

/// Addresses that the template names itself: only one VM can have each.
std::vector<std::string> read_addresses(const JsonView& properties) {
  std::vector<std::string> found;
  const auto keep = [&found](std::string address) {
    if (!address.empty()) found.push_back(std::move(address));
  };
  properties.objects("networkInterfaces", [&](const JsonView& interface) {
    keep(interface.text("networkIP"));
    keep(interface.text("ipv6Address"));
    for (const char* access : {"accessConfigs", "ipv6AccessConfigs"})
      interface.objects(access, [&](const JsonView& config) {
        keep(config.text("natIP"));
        keep(config.text("externalIpv6"));
      });
  });
  return found;
}

std::optional<Seconds> read_duration(const JsonView& holder, std::string_view key) {
  const JsonView duration = holder.object(key);
  if (!duration.is_there()) return std::nullopt;
  return Seconds{duration.number("seconds")};
}

TemplateFacts read_template(const JsonView& view) {
  const JsonView properties = view.object("properties");
  const JsonView scheduling = properties.object("scheduling");
  TemplateFacts facts{
      .name = view.text("name"),
      .machine_type = name_in(properties, "machineType"),
      .provisioning_model = scheduling.text("provisioningModel"),
      .termination_action = scheduling.text("instanceTerminationAction"),
      .on_host_maintenance = scheduling.text("onHostMaintenance"),
      .reservation = properties.object("reservationAffinity").text("consumeReservationType"),
      .is_preemptible = scheduling.flag("preemptible", false),
      .max_run_duration = read_duration(scheduling, "maxRunDuration"),
      .fixed_addresses = read_addresses(properties),
      .policies = names_in(properties, "resourcePolicies")};
  properties.objects("guestAccelerators", [&](const JsonView& item) {
    facts.accelerators.push_back(
        {name_in(item, "acceleratorType"), item.number("acceleratorCount", 1)});
  });
  properties.objects("serviceAccounts", [&](const JsonView& item) {
    facts.service_accounts.push_back(item.text("email"));
  });
  return facts;
}

RegionFacts read_region(const JsonView& view) {
  RegionFacts facts{
      .name = view.text("name"), .status = view.text("status"), .zones = names_in(view, "zones")};
  view.objects("quotas", [&](const JsonView& item) {
    facts.quotas.push_back({item.text("metric"), item.real("limit"), item.real("usage")});
  });
  return facts;
}

ZoneFacts read_zone(const JsonView& view) {
  return {
      .name = view.text("name"), .region = name_in(view, "region"), .status = view.text("status")};
}

MachineTypeFacts read_machine_type(const JsonView& view) {
  MachineTypeFacts facts{.name = view.text("name"),
                         .cpus = view.number("guestCpus"),
                         .deprecated = view.object("deprecated").text("state")};
  view.objects("accelerators", [&](const JsonView& item) {
    facts.accelerators.push_back(
        {name_in(item, "guestAcceleratorType"), item.number("guestAcceleratorCount", 1)});
  });
  return facts;
}

}  // namespace

const QuotaFacts* RegionFacts::quota(std::string_view metric) const {
  const auto found = std::find_if(
      quotas.begin(), quotas.end(), [&](const auto& quota) { return quota.metric == metric; });
  return found == quotas.end() ? nullptr : &*found;
}

Result<TemplateFacts> parse_template(std::string_view text) {
  return parse_document<TemplateFacts>(text, read_template);
}

Result<RegionFacts> parse_region(std::string_view text) {
  return parse_document<RegionFacts>(text, read_region);
}

Result<ZoneFacts> parse_zone(std::string_view text) {
  return parse_document<ZoneFacts>(text, read_zone);
}

Result<MachineTypeFacts> parse_machine_type(std::string_view text) {
  return parse_document<MachineTypeFacts>(text, read_machine_type);
}

Result<ProjectFacts> parse_project(std::string_view text) {
  return parse_document<ProjectFacts>(text, [](const JsonView& view) {
    // Its id is not the project's number; the name of its default account begins with that.
    const std::string account = view.text("defaultServiceAccount");
    const std::size_t end = account.find_first_not_of("0123456789");
    const bool has_number = end != std::string::npos && end > 0 && account[end] == '-';
    return ProjectFacts{.name = view.text("name"),
                        .number = has_number ? account.substr(0, end) : std::string{}};
  });
}

Result<std::vector<std::string>> parse_group_errors(std::string_view text) {
  return parse_document<std::vector<std::string>>(text, [](const JsonView& view) {
    std::vector<std::string> messages;
    view.objects("items", [&](const JsonView& item) {
      messages.push_back(item.object("error").text("message"));
    });
    return messages;
  });
}

bool lacks_scope(const Error& error) {
  return error.kind == ErrorKind::Denied &&
         (error.code == "insufficientPermissions" ||
          error.code == "ACCESS_TOKEN_SCOPE_INSUFFICIENT" ||
          error.what.find("insufficient authentication scopes") != std::string::npos);
}

std::string named_permission(std::string_view message) {
  constexpr std::string_view kBefore = "Required '";
  const std::size_t at = message.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = message.substr(at + kBefore.size());
  const std::string_view name = rest.substr(0, rest.find('\''));
  const bool is_permission = !name.empty() && name.size() < 100 &&
                             name.find('.') != std::string_view::npos &&
                             std::all_of(name.begin(), name.end(), [](char c) {
                               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
                             });
  return is_permission ? std::string(name) : std::string{};
}

}  // namespace flex
