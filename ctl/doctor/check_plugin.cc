// SPDX-License-Identifier: GPL-2.0-or-later
// plugstack.conf: the plugin is a comfort, a line that leads nowhere is not.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <sys/stat.h>

namespace flex::doctor {

void check_plugin(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf) return;
  const SlurmFacts::Plugin& plugin = facts.slurm.plugin;
  if (plugin.on_disk.exists && (plugin.on_disk.mode & S_IROTH) == 0) {
    findings.push_back({.id = "slurm.plugstack_mode",
                        .what = fmt::format("not everybody may read {}", plugin.file),
                        .why = "sbatch, salloc and srun read it as the user who calls them, and "
                               "fail: 'spank: Failed to open …: Permission denied'",
                        .fix = "let everybody read it: mode 0644",
                        .place = {.file = plugin.file},
                        .hints = {fmt::format("chmod 0644 {}", plugin.file)}});
    // Nor may we: what is in it is not known.
    if (!plugin.has_file) return;
  }
  if (plugin.line == 0) {
    findings.push_back({.id = "slurm.plugin",
                        .severity = Severity::Note,
                        .what = "no line of plugstack.conf names spank_flex_start.so",
                        .why = "jobs lack --flex-run-duration, --flex-max-wait and "
                               "SLURM_FLEX_END_TIME; everything else works without",
                        .fix = "add the line of plugstack.conf.example; see spank_flex_start(8)",
                        .place = {.file = plugin.file},
                        .hints = {"optional spank_flex_start.so"}});
    return;
  }
  if (plugin.so.path.empty() || plugin.so.exists) return;
  findings.push_back({.id = "slurm.plugin_file",
                      .severity = plugin.is_required ? Severity::Error : Severity::Warning,
                      .what = fmt::format("there is no {}", plugin.so.path),
                      .why = plugin.is_required
                                 ? "the line says 'required': sbatch and all jobs fail"
                                 : "the line says 'optional': the plugin's options are missing",
                      .fix = "write the path of spank_flex_start.so of this machine",
                      .place = {plugin.file, plugin.line, 0},
                      .hints = {"optional spank_flex_start.so"}});
}

}  // namespace flex::doctor
