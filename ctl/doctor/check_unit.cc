// SPDX-License-Identifier: GPL-2.0-or-later
// /etc/default/flex-sweeper: what the sweeper's unit sets reaches the sweeper, and nobody else.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

namespace flex::doctor {
namespace {

constexpr std::string_view kFile = "/etc/default/flex-sweeper";

std::string value_of(const Facts& facts, const std::string& key) {
  const auto found = facts.unit_environment.find(key);
  return found == facts.unit_environment.end() ? std::string{} : found->second;
}

Finding finding_of(std::string_view key, std::string_view value, std::string_view otherwise) {
  return {.id = "sweeper.environment",
          .severity = Severity::Warning,
          .what = fmt::format("{} sets {}={}, for flex-sweeper alone", kFile, key, value),
          .why = fmt::format("slurmctld hands only SLURM_CONF and SLURM_RESUME_FILE on to "
                             "flex-resume and flex-suspend: they {}",
                             otherwise),
          .place = {.file = std::string(kFile)}};
}

}  // namespace

void check_unit(const Facts& facts, Findings& findings) {
  const std::string config = value_of(facts, "FLEX_START_CONFIG");
  const std::size_t slash = facts.slurm.file.rfind('/');
  const std::string beside = slash == std::string::npos
                                 ? std::string{}
                                 : facts.slurm.file.substr(0, slash + 1) + "flex-start.yaml";
  if (!config.empty() && !beside.empty() && config != beside) {
    Finding finding =
        finding_of("FLEX_START_CONFIG", config, fmt::format("read {}, or fail", beside));
    finding.fix = fmt::format("move it to {}, and take the line out", beside);
    finding.hints = {fmt::format("mv {} {}", config, beside)};
    findings.push_back(std::move(finding));
  }
  const std::string key = value_of(facts, "GOOGLE_APPLICATION_CREDENTIALS");
  if (!key.empty() && facts.yaml.is_good() && facts.yaml.config().credentials == "auto") {
    Finding finding = finding_of(
        "GOOGLE_APPLICATION_CREDENTIALS", key, "use other credentials than the sweeper, or none");
    finding.fix = fmt::format("write credentials: {} in flex-start.yaml", key);
    finding.hints = {fmt::format("credentials: {}", key)};
    findings.push_back(std::move(finding));
  }
}

}  // namespace flex::doctor
