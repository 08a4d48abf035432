// SPDX-License-Identifier: GPL-2.0-or-later
// All that the doctor looks at, gathered before anything is decided. Plain structs; what could not
// be had is empty, and its error says why.
#pragma once

#include "lib/config/load.h"
#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/gce/cloud_facts.h"
#include "lib/slurm/conf_file.h"
#include "lib/slurm/running_conf.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace flex::doctor {

/// A file or directory that something names.
struct FileFacts {
  std::string path{};
  bool exists = false;
  int error = 0;  ///< errno of the look at it, where it does not exist for us
  bool is_directory = false;
  bool is_file = false;
  bool may_be_read = true;  ///< by us
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0;
  std::string real_name{};  ///< its name where links lead to
};

/// flex-start.yaml.
struct YamlFacts {
  std::string file{};
  FileFacts on_disk{};
  LoadedConfig loaded{};
  /// Line of each key, by dotted path: "nodesets.a3u.zones", "sweeper.listen".
  std::map<std::string, int> lines{};

  [[nodiscard]] bool is_good() const { return loaded.ok(); }

  [[nodiscard]] const Config& config() const { return loaded.config; }

  /// The line of the key, or of what it is in; 0: neither is there.
  [[nodiscard]] int line_of(std::string key) const;
};

/// A node of slurm.conf.
struct ConfNode {
  std::string state{};  ///< upper case; empty: not said
  ConfPlace place{};
};

struct SlurmFacts {
  std::string file{};                 ///< empty: none was found
  std::optional<SlurmConf> conf{};    ///< nothing: it cannot be read
  std::string conf_error{};           ///< why
  std::string library_version{};      ///< of libslurm
  std::optional<uid_t> slurm_user{};  ///< SlurmUser's id; nothing: no such user
  std::string slurm_user_name{};
  std::string slurm_user_home{};
  std::vector<gid_t> slurm_user_groups{};

  /// Whether SlurmUser may do that with it: bits as others have them, S_IROTH | S_IXOTH. True
  /// where there is no such user to ask about.
  [[nodiscard]] bool user_may(const FileFacts& looked_at, mode_t bits) const;

  std::map<std::string, FileFacts> programs{};  ///< by key: "ResumeProgram"
  std::map<NodeName, ConfNode> nodes{};         ///< of all NodeName lines
  std::vector<ConfProblem> bad_lists{};         ///< hostlists of slurm.conf that cannot be read

  /// plugstack.conf: our line, if there is one.
  struct Plugin {
    std::string file{};   ///< plugstack.conf
    FileFacts on_disk{};  ///< that
    bool has_file = false;
    int line = 0;  ///< 0: no line names our plugin
    bool is_required = false;
    FileFacts so{};  ///< empty path: a bare name, to be found in PluginDir
  } plugin{};

  /// slurmctld; nothing: not asked, or no answer.
  std::optional<RunningConf> running{};
  std::string running_error{};
  bool was_asked = false;
  /// What libslurm said when it refused slurm.conf; empty: it did not.
  std::string refused{};
  std::map<NodeName, bool> running_nodes{};  ///< name: is a cloud node
  std::set<NodeName> unusable{};             ///< cloud nodes that are off and that no job may get

  /// slurmctld's where it is known, else libslurm's.
  [[nodiscard]] std::string version() const { return running ? running->version : library_version; }
};

/// state_dir and what the sweeper leaves there.
struct StateFacts {
  bool was_looked_at = false;
  FileFacts directory{};
  FileFacts parent{};
  std::optional<TimePoint> heartbeat{};      ///< the last complete round
  std::optional<TimePoint> at_work_since{};  ///< a sweeper that holds the lock took it then
};

/// One answer of Compute Engine.
template <class T>
using Asked = std::optional<Result<T>>;

struct CloudLook {
  bool was_asked = false;
  std::string credentials_error{};  ///< the key file's rules
  FileFacts key_file{};             ///< empty path: none is named
  std::string environment_key{};    ///< one that only our environment names
  std::string not_opened{};         ///< the endpoint's, libcurl's
  Asked<Done> token{};
  Asked<RegionFacts> region{};
  Asked<ProjectFacts> project{};
  std::map<std::string, Result<ZoneFacts>> zones{};
  std::map<std::string, Result<TemplateFacts>> templates{};  ///< by what the config writes
  /// By zone and machine type.
  std::map<std::pair<std::string, std::string>, Result<MachineTypeFacts>> machine_types{};
  /// Permission: whether it is held. Nothing of it if it could not be found out.
  std::vector<std::pair<Probe, Result<Done>>> probes{};
  std::vector<std::pair<std::string, Group>> groups{};  ///< of ours, with their nodesets
  std::vector<std::string> group_errors{};              ///< what groups of ours complain about
  /// What was asked and gave nothing, by question ("zone us-central1-a"): an error, or that no
  /// answer came in time.
  std::map<std::string, Error> failures{};
  std::optional<Seconds> clock_skew{};  ///< ours minus Google's
};

struct Facts {
  bool is_offline = false;
  bool is_read_only = false;
  TimePoint now{};
  std::string program_dir = "/usr/sbin";  ///< where flexctl is, and so its neighbours
  YamlFacts yaml{};
  SlurmFacts slurm{};
  StateFacts state{};
  CloudLook cloud{};
  /// /etc/default/flex-sweeper: what the unit of flex-sweeper sets, and nobody else has.
  std::map<std::string, std::string> unit_environment{};
};

}  // namespace flex::doctor
