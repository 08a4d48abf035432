// SPDX-License-Identifier: GPL-2.0-or-later
// What Compute Engine says: first whether it talks to us at all, then everything side by side.
#include "ctl/doctor/gather.h"
#include "lib/core/program.h"
#include "lib/gce/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <unistd.h>

namespace flex::doctor {
namespace {

using namespace std::chrono_literals;

/// Whose credentials the programs use: slurmctld starts them as SlurmUser and hands on nothing of
/// our environment. For others than root what they find themselves has to do.
std::string setting_of(const Facts& facts) {
  const std::string& setting = facts.yaml.config().credentials;
  const auto& user = facts.slurm.slurm_user;
  if (setting != "auto" || ::geteuid() != 0 || !user || *user == 0) return setting;
  std::string file = fmt::format("{}/.config/gcloud/application_default_credentials.json",
                                 facts.slurm.slurm_user_home);
  return look_at(file).exists ? file : "metadata";
}

std::string key_path(const std::string& setting) {
  if (setting == "metadata") return {};
  return setting == "auto" ? environment("GOOGLE_APPLICATION_CREDENTIALS") : setting;
}

std::string cluster_of(const Facts& facts) {
  const std::string& named = facts.yaml.config().cluster;
  if (!named.empty()) return named;
  return facts.slurm.conf ? facts.slurm.conf->get("ClusterName") : std::string{};
}

CloudSettings settings_of(const Facts& facts) {
  const Config& config = facts.yaml.config();
  return {.endpoint = config.api.endpoint,
          .project = config.project,
          .region = config.region,
          .credentials = setting_of(facts),
          .max_in_flight = config.api.max_in_flight,
          .call_timeout = std::min<Seconds>(config.api.call_timeout, 10s),
          .run_timeout = 30s,
          // A doctor tells that a call fails rather than try for long.
          .retry = {.limit = 3},
          .slurm_user = facts.slurm.slurm_user};
}

/// All that the config names.
struct Names {
  std::set<std::string> zones{};
  std::set<std::string> templates{};
  bool has_placement = false;
  bool has_loose = false;
};

Names names_in(const Config& config) {
  Names names;
  for (const NodesetConfig& nodeset : config.nodesets) {
    names.zones.insert(nodeset.zones.begin(), nodeset.zones.end());
    names.templates.insert(nodeset.instance_template);
    names.has_placement |= nodeset.placement.is_wanted();
    names.has_loose |= nodeset.mode == Mode::BulkInsert;
    for (const StockoutStep& step : nodeset.on_stockout) {
      names.zones.insert(step.zones.begin(), step.zones.end());
      if (!step.instance_template.empty()) names.templates.insert(step.instance_template);
      names.has_loose |= step.mode == Mode::BulkInsert;
    }
  }
  return names;
}

/// The question counts as failed until a good answer comes.
template <class T, class Next>
Then<T> noted(CloudLook& look, const std::string& question, Next next) {
  look.failures.insert_or_assign(
      question, Error{ErrorKind::Retry, question + ": no answer in time", "NO_ANSWER"});
  return [&look, question, next = std::move(next)](Result<T> answer) {
    if (answer)
      look.failures.erase(question);
    else
      look.failures.insert_or_assign(question, answer.error());
    next(std::move(answer));
  };
}

/// False: it is of no use to ask for more.
bool ask_first(CloudFacts& cloud, CloudLook& look) {
  cloud.fetch_token(noted<Done>(look, "token", [&](Result<Done> answer) {
    look.token = std::move(answer);
    if (!*look.token) return;
    cloud.fetch_region(noted<RegionFacts>(
        look, "region", [&](Result<RegionFacts> region) { look.region = std::move(region); }));
  }));
  cloud.run();
  look.clock_skew = cloud.clock_skew();
  if (!look.token || !*look.token || !look.region) return false;
  if (*look.region) return true;
  const Error& error = look.region->error();
  return error.kind != ErrorKind::Retry && error.code != "accessNotConfigured" &&
         error.code != "SERVICE_DISABLED" && !lacks_scope(error);
}

void ask_machine_types(CloudFacts& cloud,
                       const Names& names,
                       const std::string& type,
                       CloudLook& look) {
  for (const std::string& zone : names.zones)
    cloud.fetch_machine_type(
        zone,
        type,
        noted<MachineTypeFacts>(
            look,
            fmt::format("machine type {} in zone {}", type, zone),
            [&look, zone, type](Result<MachineTypeFacts> found) {
              look.machine_types.emplace(std::pair{zone, type}, std::move(found));
            }));
}

void ask_templates(CloudFacts& cloud, const Names& names, CloudLook& look) {
  for (const std::string& given : names.templates)
    cloud.fetch_template(
        given,
        noted<TemplateFacts>(look, "template " + given, [&, given](Result<TemplateFacts> answer) {
          const std::string type = answer ? answer->machine_type : std::string{};
          look.templates.emplace(given, std::move(answer));
          if (!type.empty()) ask_machine_types(cloud, names, type, look);
        }));
}

void ask_group_errors(CloudFacts& cloud, const MigName& group, CloudLook& look) {
  using Texts = std::vector<std::string>;
  cloud.fetch_group_errors(
      group,
      noted<Texts>(look, fmt::format("errors of group {}", group), [&look](Result<Texts> errors) {
        if (errors)
          look.group_errors.insert(look.group_errors.end(), errors->begin(), errors->end());
      }));
}

void ask_groups(CloudFacts& cloud, const std::string& cluster, CloudLook& look) {
  using Groups = std::vector<Group>;
  if (cluster.empty()) return;
  cloud.fetch_groups(cluster_name_prefix(cluster),
                     noted<Groups>(look, "groups", [&cloud, &look, cluster](Result<Groups> groups) {
                       if (!groups) return;
                       for (const Group& group : *groups) {
                         auto nodeset = owned_nodeset(group.description, cluster);
                         if (!nodeset) continue;
                         look.groups.emplace_back(*std::move(nodeset), group);
                         ask_group_errors(cloud, group.name, look);
                       }
                     }));
}

void ask_probes(CloudFacts& cloud, const Facts& facts, const Names& names, CloudLook& look) {
  const std::string& region = facts.yaml.config().region;
  const auto probes =
      permission_probes({.region = region,
                         .zone = names.zones.empty() ? region + "-a" : *names.zones.begin(),
                         .has_placement = names.has_placement,
                         .has_loose = names.has_loose,
                         .has_writes = !facts.is_read_only});
  for (const Probe& probe : probes)
    cloud.probe(
        probe,
        noted<Done>(look, "permission " + probe.permission, [&look, probe](Result<Done> answer) {
          look.probes.emplace_back(probe, std::move(answer));
        }));
}

void ask_rest(CloudFacts& cloud, const Facts& facts, CloudLook& look) {
  const Names names = names_in(facts.yaml.config());
  cloud.fetch_project(noted<ProjectFacts>(
      look, "project", [&](Result<ProjectFacts> answer) { look.project = std::move(answer); }));
  for (const std::string& zone : names.zones)
    cloud.fetch_zone(
        zone, noted<ZoneFacts>(look, "zone " + zone, [&look, zone](Result<ZoneFacts> answer) {
          look.zones.emplace(zone, std::move(answer));
        }));
  ask_templates(cloud, names, look);
  ask_groups(cloud, cluster_of(facts), look);
  ask_probes(cloud, facts, names, look);
  cloud.run();
}

}  // namespace

void gather_cloud(Facts& facts, const Progress& progress) {
  CloudLook& look = facts.cloud;
  const Config& config = facts.yaml.config();
  const std::string setting = setting_of(facts);
  look.key_file = look_at(key_path(setting));
  if (config.credentials == "auto")
    look.environment_key = environment("GOOGLE_APPLICATION_CREDENTIALS");
  const auto credentials = load_credentials(setting, facts.slurm.slurm_user);
  if (!credentials) {
    look.credentials_error = credentials.error().what;
    return;
  }
  if (facts.is_offline) return;
  look.was_asked = true;
  progress("credentials and region");
  const auto cloud = open_cloud_facts(settings_of(facts));
  if (!cloud) {
    look.not_opened = cloud.error().what;
    return;
  }
  if (!ask_first(**cloud, look)) return;
  progress("templates, zones, permissions");
  ask_rest(**cloud, facts, look);
  // They come as they are answered.
  std::sort(look.probes.begin(), look.probes.end(), [](const auto& one, const auto& other) {
    return one.first.permission < other.first.permission;
  });
}

Facts gather(const GatherOptions& options, const Progress& progress) {
  Facts facts{.is_offline = options.is_offline,
              .is_read_only = options.is_read_only,
              .now = std::chrono::floor<Seconds>(std::chrono::system_clock::now())};
  progress("slurm.conf");
  gather_slurm_conf(facts);
  const auto slurmctld = options.is_offline || !facts.slurm.conf ? nullptr : ask_slurmctld();
  progress("flex-start.yaml");
  gather_yaml(options.config_file, facts);
  gather_unit(facts);
  if (facts.yaml.is_good()) gather_cloud(facts, progress);
  if (slurmctld) {
    progress("slurmctld");
    slurmctld->finish(facts.slurm);
  }
  if (facts.yaml.is_good() && !options.is_offline) gather_state(facts);
  return facts;
}

}  // namespace flex::doctor
