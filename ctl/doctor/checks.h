// SPDX-License-Identifier: GPL-2.0-or-later
// The checks, one file for each topic: pure functions from facts to findings.
#pragma once

#include "ctl/doctor/facts.h"
#include "ctl/doctor/finding.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex::doctor {

void check_config(const Facts& facts, Findings& findings);
/// Whether SlurmUser can read it.
void check_config_file(const Facts& facts, Findings& findings);
void check_slurm_conf(const Facts& facts, Findings& findings);
void check_programs(const Facts& facts, Findings& findings);
void check_timeouts(const Facts& facts, Findings& findings);
void check_version(const Facts& facts, Findings& findings);
void check_nodes(const Facts& facts, Findings& findings);
/// After check_timeouts: without power saving there is nothing to keep from it.
void check_suspending(const Facts& facts, Findings& findings);
void check_partitions(const Facts& facts, Findings& findings);
void check_plugin(const Facts& facts, Findings& findings);
/// After the others: a key that one of them complains about is not told to be out of date as well.
void check_running(const Facts& facts, Findings& findings);
/// What only the unit of flex-sweeper knows.
void check_unit(const Facts& facts, Findings& findings);
void check_state(const Facts& facts, Findings& findings);
void check_credentials(const Facts& facts, Findings& findings);
void check_region(const Facts& facts, Findings& findings);
void check_templates(const Facts& facts, Findings& findings);
void check_machines(const Facts& facts, Findings& findings);
void check_quotas(const Facts& facts, Findings& findings);
/// After those.
void check_groups(const Facts& facts, Findings& findings);
void check_permissions(const Facts& facts, Findings& findings);
/// After all that Google was asked about.
void check_answers(const Facts& facts, Findings& findings);
void check_clock(const Facts& facts, Findings& findings);

/// All of them, in the order of an admin's work.
[[nodiscard]] Findings check_all(const Facts& facts);

// ---- what several checks use ----

/// A release of Slurm.
struct Release {
  int year = 0;
  int month = 0;
  int patch = 0;
  friend auto operator<=>(const Release&, const Release&) = default;
};

/// "22.05.8", also "24.11.0-0rc1"; nothing if it is no release.
[[nodiscard]] std::optional<Release> parse_release(std::string_view text);
/// Of the Slurm that is looked at; the newest if it cannot be told.
[[nodiscard]] Release release_of(const Facts& facts);

/// A number of seconds or minutes as slurm.conf takes it.
struct SlurmNumber {
  bool is_set = false;
  bool is_infinite = false;  ///< INFINITE, UNLIMITED, -1
  bool is_good = true;       ///< false: neither a number nor one of these
  std::int64_t value = 0;
};

[[nodiscard]] SlurmNumber parse_slurm_number(std::string_view text);
/// MaxTime, DefaultTime: minutes, or D-HH:MM:SS and so on, in seconds.
[[nodiscard]] SlurmNumber parse_slurm_time(std::string_view text);

/// A setting of slurm.conf that should be written otherwise: the place of the line, or the file.
[[nodiscard]] Place conf_place(const Facts& facts, std::string_view key);
[[nodiscard]] Place to_place(const ConfPlace& place);
[[nodiscard]] Place yaml_place(const Facts& facts, const std::string& key);

/// "write 'Key=Value'", with the whole line as a hint.
void write_setting(Finding& finding, std::string_view key, std::string_view value);

/// A node of one of the nodesets.
[[nodiscard]] bool is_ours(const Facts& facts, const NodeName& node);

/// The nodes of a list of slurm.conf; those of ALL and of NodeSets, too.
[[nodiscard]] std::vector<NodeName> listed_nodes(const Facts& facts, const std::string& list);
/// The nodes of a partition of slurm.conf.
[[nodiscard]] std::vector<NodeName> partition_nodes(const Facts& facts, const ConfEntry& partition);

/// A refusal that is about a permission, and not about a token or a policy.
[[nodiscard]] bool is_missing_permission(const Error& error);

/// What Google was asked and did not answer in a way that tells anything, each with what it said.
[[nodiscard]] std::vector<std::string> unanswered(const CloudLook& cloud);

/// Reads that no program makes but the doctor: what they would have told stays unknown.
struct DeniedRead {
  std::string_view permission;
  std::string_view topic;  ///< what was not checked: "quotas"
  std::string error;
  bool is_needed = false;  ///< a program needs the permission, too
};

[[nodiscard]] std::vector<DeniedRead> denied_reads(const CloudLook& cloud);

}  // namespace flex::doctor
