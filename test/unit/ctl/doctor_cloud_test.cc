// SPDX-License-Identifier: GPL-2.0-or-later
// The doctor's checks of what Google says.
#include "test/unit/ctl/doctor_facts.h"

namespace flex::doctor {
namespace {

TEST_CASE("doctor: the clock", "[ctl]") {
  const auto [skew, what] = GENERATE(table<int, std::string>({
      {0, ""},
      {29, ""},
      {-30, "clock.skew warning"},
      {299, "clock.skew warning"},
      {300, "clock.skew error"},
      {-86400, "clock.skew error"},
  }));
  Facts facts = facts_of();
  facts.cloud.clock_skew = Seconds{skew};
  CHECK(found(facts) == what);
}

TEST_CASE("doctor: what Google did not answer is told", "[ctl]") {
  Facts facts = facts_of();
  add_cloud(facts);
  const auto [question, error] = GENERATE(table<std::string, Error>({
      {"zone us-central1-a", {ErrorKind::Retry, "zone 'us-central1-a': HTTP 503", "backendError"}},
      {"template flex", {ErrorKind::Internal, "template 'flex': no JSON"}},
      {"project", {ErrorKind::Quota, "project: too many", "quotaExceeded"}},
      {"groups", {ErrorKind::Retry, "groups: no answer in time", "NO_ANSWER"}},
      {"region", {ErrorKind::Invalid, "region 'x': HTTP 400", "invalid"}},
      {"permission compute.instances.delete", {ErrorKind::Denied, "401", "authError"}},
  }));
  facts.cloud.failures.emplace(question, error);
  const Findings findings = check_all(facts);
  CHECK(found(facts) == "api.incomplete warning");
  CHECK(exit_code(findings) == 1);
  CHECK(to_text(facts, findings, {}, false).find("not checked: " + error.what + "\n") !=
        std::string::npos);
  CHECK(to_json_text(facts, findings).find(error.what) != std::string::npos);
}

TEST_CASE("doctor: a token that is not for Compute Engine", "[ctl]") {
  Facts facts = facts_of();
  add_cloud(facts);
  const Error error{ErrorKind::Denied,
                    "region: Request had insufficient authentication scopes.",
                    "insufficientPermissions"};
  SECTION("nothing can be asked") {
    facts.cloud.probes.clear();
    facts.cloud.region = Result<RegionFacts>(error);
    facts.cloud.failures.emplace("region", error);
  }
  SECTION("only reads can") {
    for (const char* permission : {"compute.instances.delete", "compute.instances.create"}) {
      facts.cloud.probes.emplace_back(Probe{.permission = permission}, error);
      facts.cloud.failures.emplace(permission, error);
    }
  }
  CHECK(found(facts) == "credentials.scope error");
}

std::string found_in_bulk(const TemplateFacts& made) {
  Facts facts = facts_of();
  facts.yaml.loaded =
      parse_config(fmt::format("{}    mode: bulk_insert\n", kYaml), "flex-start.yaml");
  REQUIRE(facts.yaml.is_good());
  add_cloud(facts);
  facts.cloud.templates.insert_or_assign("flex", made);
  return found(facts);
}

TEST_CASE("doctor: what bulk_insert asks of a template", "[ctl]") {
  const TemplateFacts flex = [] {
    Facts facts = facts_of();
    add_cloud(facts);
    return *facts.cloud.templates.at("flex");
  }();
  TemplateFacts standard{.name = "flex", .machine_type = "n2-standard-4"};
  CHECK(found_in_bulk(flex).empty());
  CHECK(found_in_bulk(standard).empty());
  standard.policies = {"compact"};
  standard.reservation = "ANY_RESERVATION";
  standard.termination_action = "STOP";
  standard.on_host_maintenance = "MIGRATE";
  CHECK(found_in_bulk(standard).empty());
  standard.machine_type = "a3-highgpu-8g";
  CHECK(found_in_bulk(standard) == "template.maintenance error");
  TemplateFacts half = flex;
  half.termination_action = {};
  half.on_host_maintenance = "MIGRATE";
  half.reservation = {};
  CHECK(found_in_bulk(half) == "template.maintenance error, template.reservation error");
}

TEST_CASE("doctor: a step of on_stockout has what the one before it has", "[ctl]") {
  const TemplateFacts standard{
      .name = "other", .machine_type = "a3-highgpu-8g", .on_host_maintenance = "TERMINATE"};
  const auto found_after = [&](std::string_view steps) {
    Facts facts = facts_of();
    facts.yaml.loaded =
        parse_config(fmt::format("{}    on_stockout: [{}]\n", kYaml, steps), "flex-start.yaml");
    REQUIRE(facts.yaml.is_good());
    add_cloud(facts);
    facts.cloud.templates.emplace("other", standard);
    return found(facts);
  };
  const std::string bad =
      "template.model error, template.termination error, template.reservation error, "
      "template.no_run_duration error";
  CHECK(found_after("{wait: 1h, instance_template: other}") == bad);
  CHECK(found_after("{wait: 1h, mode: bulk_insert}, {wait: 1h, instance_template: other}").empty());
  CHECK(found_after("{wait: 1h, mode: bulk_insert, instance_template: other}, "
                    "{wait: 1h, mode: individual}") == bad);
}

TEST_CASE("doctor: the cloud", "[ctl]") {
  Facts facts = facts_of();
  add_cloud(facts);
  SECTION("good") {
    CHECK(found(facts).empty());
    CHECK(found(facts, true) == "iam.service_agent_unseen info");
  }
  SECTION("a preemptible quota of 0 stands for the ordinary one") {
    (*facts.cloud.region)->quotas = {{"PREEMPTIBLE_NVIDIA_H100_GPUS", 0, 0},
                                     {"NVIDIA_H100_GPUS", 100, 0}};
    CHECK(found(facts).empty());
  }
  SECTION("neither") {
    (*facts.cloud.region)->quotas = {{"PREEMPTIBLE_NVIDIA_H100_GPUS", 0, 0},
                                     {"NVIDIA_H100_GPUS", 0, 0}};
    CHECK(found(facts) == "quota.gpus error");
  }
  SECTION("a quota that the region does not list says nothing") {
    (*facts.cloud.region)->quotas = {};
    CHECK(found(facts).empty());
    CHECK(found(facts, true) == "quota.unseen info, iam.service_agent_unseen info");
  }
  SECTION("a group that was made with another template") {
    facts.cloud.groups.emplace_back(
        facts.yaml.config().nodesets.front().name,
        Group{.name = {"hpc-a"}, .instance_template = "https://x/global/instanceTemplates/old"});
    CHECK(found(facts) == "template.group warning");
    facts.cloud.groups.front().second.instance_template =
        "projects/p/global/instanceTemplates/flex";
    CHECK(found(facts).empty());
  }
  SECTION("a probe that Google took for real") {
    const Error error{ErrorKind::Internal, "POST /x was accepted", "ACCEPTED"};
    facts.cloud.probes.emplace_back(Probe{.permission = "compute.instances.create",
                                          .makes = "the VM flex-doctor-1",
                                          .undo = "gcloud compute instances list"},
                                    error);
    facts.cloud.failures.emplace("permission compute.instances.create", error);
    CHECK(found(facts) == "iam.probe_accepted warning");
    const Finding finding = check_all(facts).front();
    CHECK(finding.what == "POST /x was accepted: look for the VM flex-doctor-1");
    CHECK(finding.hints == std::vector<std::string>{"gcloud compute instances list"});
  }
  SECTION("a key file that only the environment names") {
    facts.cloud.environment_key = "/home/admin/key.json";
    CHECK(found(facts) == "credentials.environment warning");
  }
  SECTION("requests") {
    (*facts.cloud.region)->quotas.push_back({"ACTIVE_RESIZE_REQUESTS", 20, 0});
    CHECK(found(facts) == "quota.requests warning");
  }
  SECTION("a permission that only the doctor needs is no reason to worry") {
    facts.cloud.region =
        Result<RegionFacts>(Error{ErrorKind::Denied, "Required 'compute.regions.get'"});
    CHECK(found(facts, true) == "iam.unseen info, iam.service_agent_unseen info");
    CHECK(to_text(facts, check_all(facts), {}, false) ==
          "not checked: quotas: permission compute.regions.get is missing\n"
          "nothing found; 2 notes (shown with --fix-hints)\n");
  }
  SECTION("one that a program needs is") {
    facts.cloud.probes.emplace_back(
        Probe{.permission = "compute.instances.delete"},
        Error{ErrorKind::Denied, "Required 'compute.instances.delete' permission for 'x'"});
    CHECK(found(facts) == "iam.permission error");
  }
  SECTION("a permission that another's policy takes away is not said to be missing") {
    const Error error{ErrorKind::Denied, "compute.instances.delete: no", "conditionNotMet"};
    facts.cloud.probes.emplace_back(Probe{.permission = "compute.instances.delete"}, error);
    facts.cloud.failures.emplace("permission compute.instances.delete", error);
    CHECK(found(facts) == "api.incomplete warning");
  }
  SECTION("the service agent, as a group sees it") {
    facts.cloud.group_errors = {
        "Required 'compute.instances.create' permission acting as "
        "42@cloudservices.gserviceaccount.com"};
    CHECK(found(facts) == "iam.service_agent error");
  }
  SECTION("the API is not enabled") {
    facts.cloud.probes.clear();
    facts.cloud.region =
        Result<RegionFacts>(Error{ErrorKind::Denied, "not used before", "accessNotConfigured"});
    CHECK(found(facts) == "api.disabled error");
  }
  SECTION("a template of another project is not looked at") {
    facts.cloud.templates.at("flex") = Error{ErrorKind::Invalid, "template 'x'", "OTHER_PROJECT"};
    CHECK(found(facts, true) == "template.unseen info, iam.service_agent_unseen info");
  }
}

}  // namespace
}  // namespace flex::doctor
