// SPDX-License-Identifier: GPL-2.0-or-later
// What Google did not answer: silence must not look like health.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace flex::doctor {
namespace {

/// An answer that says what is wrong; other checks tell it.
bool is_telling(const Error& error) {
  return error.kind == ErrorKind::NotFound || error.code == "OTHER_PROJECT" ||
         error.code == "ACCEPTED" || is_missing_permission(error) || lacks_scope(error);
}

/// Whether it is told already that, and why, nothing can be asked.
bool is_told(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    const std::string topic = finding.id.substr(0, finding.id.find('.'));
    return finding.severity == Severity::Error && (topic == "api" || topic == "credentials");
  });
}

}  // namespace

bool is_missing_permission(const Error& error) {
  if (error.kind != ErrorKind::Denied || lacks_scope(error)) return false;
  return error.code == "forbidden" || error.code == "PERMISSION_DENIED" ||
         !named_permission(error.what).empty();
}

std::vector<std::string> unanswered(const CloudLook& cloud) {
  std::vector<std::string> texts;
  for (const auto& [question, error] : cloud.failures)
    if (!is_telling(error)) texts.push_back(error.what);
  return texts;
}

std::vector<DeniedRead> denied_reads(const CloudLook& cloud) {
  std::vector<DeniedRead> reads;
  const auto look = [&](std::string_view permission,
                        std::string_view topic,
                        const auto& answer,
                        bool is_needed = false) {
    if (answer || !is_missing_permission(answer.error())) return;
    const bool is_known = std::any_of(reads.begin(), reads.end(), [&](const DeniedRead& read) {
      return read.permission == permission;
    });
    if (!is_known) reads.push_back({permission, topic, answer.error().what, is_needed});
  };
  for (const auto& [given, answer] : cloud.templates)
    look("compute.instanceTemplates.get", "templates", answer, true);
  if (cloud.region) look("compute.regions.get", "quotas", *cloud.region);
  if (cloud.project) look("compute.projects.get", "the project", *cloud.project);
  for (const auto& [zone, answer] : cloud.zones) look("compute.zones.get", "zones", answer);
  for (const auto& [key, answer] : cloud.machine_types)
    look("compute.machineTypes.get", "machine types", answer);
  return reads;
}

void check_answers(const Facts& facts, Findings& findings) {
  const std::vector<std::string> open = unanswered(facts.cloud);
  if (open.empty() || is_told(findings)) return;
  findings.push_back(
      {.id = "api.incomplete",
       .severity = Severity::Warning,
       .what = fmt::format(
           "Google did not answer {} of the questions: {}", open.size(), fmt::join(open, "; ")),
       .why = "what was not answered was not checked: there may be more to mend",
       .fix = "run flexctl doctor again; if it stays so, look for the words of Google above",
       .place = yaml_place(facts, "api.endpoint"),
       .hints = {"flexctl doctor"}});
}

}  // namespace flex::doctor
