// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/doctor/report.h"

#include "ctl/doctor/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace flex::doctor {
namespace {

using nlohmann::json;

Colour colour_of(Severity severity) {
  switch (severity) {
    case Severity::Note:
      return Colour::Blue;
    case Severity::Warning:
      return Colour::Yellow;
    case Severity::Error:
      return Colour::Red;
  }
  return Colour::Plain;
}

std::size_t count_of(const Findings& findings, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [severity](const Finding& finding) {
        return finding.severity == severity;
      }));
}

/// "1 error", "2 errors".
std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string text_of(const Finding& finding, const Terminal& terminal, bool has_hints) {
  std::string text = fmt::format(
      "{} {} {}\n",
      terminal.paint(colour_of(finding.severity), fmt::format("{}:", to_string(finding.severity))),
      printable(finding.what),
      terminal.paint(Colour::Dim, fmt::format("[{}]", finding.id)));
  text += fmt::format("  why: {}\n", printable(finding.why));
  const std::string place = finding.place.text();
  text += fmt::format("  fix: {}{}\n", place.empty() ? "" : place + ": ", printable(finding.fix));
  if (has_hints)
    for (const std::string& hint : finding.hints)
      text += fmt::format("       {}\n", terminal.paint(Colour::Bold, printable(hint)));
  return text;
}

/// What was left out, and why: silence must not look like health.
std::vector<std::string> skipped(const Facts& facts) {
  std::vector<std::string> out;
  if (!facts.yaml.is_good())
    out.emplace_back("nodes, partitions and Google Cloud: mend flex-start.yaml first");
  else if (facts.is_offline)
    out.emplace_back("slurmctld, the sweeper and Google Cloud: --offline");
  else if (facts.cloud.probes.empty())
    out.emplace_back("the project: Google Cloud could not be asked");
  else if (facts.is_read_only)
    out.emplace_back("permissions to write: --read-only");
  for (const DeniedRead& read : denied_reads(facts.cloud))
    out.push_back(fmt::format("{}: permission {} is missing", read.topic, read.permission));
  // Of the first question alone a finding tells.
  if (facts.cloud.probes.empty()) return out;
  for (std::string& text : unanswered(facts.cloud)) out.push_back(std::move(text));
  return out;
}

json to_json(const Finding& finding) {
  return {{"id", finding.id},
          {"severity", to_string(finding.severity)},
          {"what", finding.what},
          {"why", finding.why},
          {"fix", finding.fix},
          {"file", finding.place.file},
          {"line", finding.place.line},
          {"column", finding.place.column},
          {"hints", finding.hints}};
}

}  // namespace

std::string to_text(const Facts& facts,
                    const Findings& findings,
                    const Terminal& terminal,
                    bool has_hints) {
  std::string text;
  for (const Severity severity : {Severity::Error, Severity::Warning, Severity::Note}) {
    if (severity == Severity::Note && !has_hints) continue;
    for (const Finding& finding : findings)
      if (finding.severity == severity) text += text_of(finding, terminal, has_hints);
  }
  for (const std::string& what : skipped(facts))
    text += fmt::format("{} {}\n", terminal.paint(Colour::Dim, "not checked:"), printable(what));
  const std::size_t errors = count_of(findings, Severity::Error);
  const std::size_t warnings = count_of(findings, Severity::Warning);
  const std::size_t notes = count_of(findings, Severity::Note);
  if (errors + warnings == 0)
    text += terminal.paint(Colour::Green, "nothing found");
  else
    text += fmt::format("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
  if (notes > 0)
    text +=
        fmt::format("; {}{}", counted(notes, "note"), has_hints ? "" : " (shown with --fix-hints)");
  text += '\n';
  if (!has_hints && errors + warnings > 0) text += "--fix-hints shows the lines to write\n";
  return text;
}

std::string to_json_text(const Facts& facts, const Findings& findings) {
  json found = json::array();
  json notes = json::array();
  for (const Finding& finding : findings)
    (finding.severity == Severity::Note ? notes : found).push_back(to_json(finding));
  const json report{{"config", facts.yaml.file},
                    {"slurm_conf", facts.slurm.file},
                    {"slurm_version", facts.slurm.version()},
                    {"errors", count_of(findings, Severity::Error)},
                    {"warnings", count_of(findings, Severity::Warning)},
                    {"findings", found},
                    {"notes", notes},
                    {"not_checked", skipped(facts)}};
  return report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace flex::doctor
