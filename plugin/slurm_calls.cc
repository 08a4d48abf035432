// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/slurm_calls.h"

#include "lib/slurm/compat.h"

#include <slurm/slurm.h>

#include <algorithm>
#include <dlfcn.h>
#include <memory>
#include <type_traits>

namespace flex::plugin {

namespace {

/// The function or object of this name in the program or its libraries, or null.
template <class T>
T* find_symbol(const char* name) {
  return reinterpret_cast<T*>(::dlsym(RTLD_DEFAULT, name));
}

/// For strings from Slurm's own heap.
void free_slurm_string(char* text) {
  void* block = text;
  if (auto* release = find_symbol<void(void**)>("slurm_xfree"); release != nullptr) release(&block);
}

// ---- node lists

using RawHostlist = decltype(slurm_hostlist_create(nullptr));

/// Nodes by Slurm's spelling. The text is the job author's, so nothing is expanded.
class NodeSet {
 public:
  explicit NodeSet(const std::string& text)
      : destroy_(find_symbol<decltype(slurm_hostlist_destroy)>("slurm_hostlist_destroy")),
        count_(find_symbol<decltype(slurm_hostlist_count)>("slurm_hostlist_count")),
        find_(find_symbol<decltype(slurm_hostlist_find)>("slurm_hostlist_find")) {
    auto* create = find_symbol<decltype(slurm_hostlist_create)>("slurm_hostlist_create");
    if (create != nullptr && destroy_ != nullptr && count_ != nullptr && find_ != nullptr)
      list_ = create(text.c_str());
    auto* unite = find_symbol<decltype(slurm_hostlist_uniq)>("slurm_hostlist_uniq");
    if (list_ != nullptr && unite != nullptr) unite(list_);
  }

  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;

  ~NodeSet() {
    if (list_ != nullptr) destroy_(list_);
  }

  [[nodiscard]] int size() const { return list_ == nullptr ? 0 : count_(list_); }

  [[nodiscard]] bool has(const char* node) const {
    return list_ != nullptr && find_(list_, node) >= 0;
  }

 private:
  decltype(slurm_hostlist_destroy)* destroy_;
  decltype(slurm_hostlist_count)* count_;
  decltype(slurm_hostlist_find)* find_;
  RawHostlist list_ = nullptr;
};

/// All that is known of the job's nodes, as one list.
std::string job_nodes(const LeaseQuestion& question) {
  std::string text;
  const auto add = [&text](const std::string& list) { text += (text.empty() ? "" : ",") + list; };
  for (const std::string& list : question.node_lists) {
    if (NodeSet(list).has(question.node.c_str())) add(list);
  }
  for (const std::string& list : question.part_lists) add(list);
  return text;
}

// ---- node records

struct FreeNodes {
  void operator()(node_info_msg_t* nodes) const {
    auto* release = find_symbol<decltype(slurm_free_node_info_msg)>("slurm_free_node_info_msg");
    if (release != nullptr) release(nodes);
  }
};

using NodesPtr = std::unique_ptr<node_info_msg_t, FreeNodes>;

NodesPtr load_all() {
  auto* load = find_symbol<decltype(slurm_load_node)>("slurm_load_node");
  node_info_msg_t* nodes = nullptr;
  if (load == nullptr || load(0, &nodes, SHOW_ALL) != SLURM_SUCCESS) return nullptr;
  return NodesPtr(nodes);
}

NodesPtr load_one(std::string name) {
  auto* load = find_symbol<decltype(slurm_load_node_single)>("slurm_load_node_single");
  node_info_msg_t* nodes = nullptr;
  if (load == nullptr || load(&nodes, name.data(), SHOW_ALL) != SLURM_SUCCESS) return nullptr;
  return NodesPtr(nodes);
}

/// A step of a bigger job than this asks for its own node only: the records of all nodes, for each
/// of thousands of nodes at the same moment, would be too much for slurmctld.
constexpr int kMostNodes = 64;

/// Slurm waits ten seconds for an answer, or as long as the site says.
void hurry() {
  constexpr std::uint16_t kSeconds = 2;
  if (&slurm_conf != nullptr) slurm_conf.msg_timeout = std::min(slurm_conf.msg_timeout, kSeconds);
}

}  // namespace

std::optional<ProgramOptions> ProgramOptions::find() {
  ProgramOptions program;
  program.options_ = ::dlsym(RTLD_DEFAULT, "opt");
  program.get_ = find_symbol<std::remove_pointer_t<Get>>("slurm_option_get");
  program.set_ = find_symbol<std::remove_pointer_t<Set>>("slurm_option_set");
  if (program.options_ == nullptr || program.get_ == nullptr || program.set_ == nullptr)
    return std::nullopt;
  return program;
}

std::string ProgramOptions::get(const char* name) const {
  const std::unique_ptr<char, void (*)(char*)> value(get_(options_, name), &free_slurm_string);
  return value == nullptr ? "" : value.get();
}

bool ProgramOptions::set(const char* name, const std::string& value) const {
  return set_(options_, name, value.c_str(), false) == SLURM_SUCCESS;
}

std::string slurmd_spool_dir() {
  if (&slurm_conf == nullptr || slurm_conf.slurmd_spooldir == nullptr) return "";
  return slurm_conf.slurmd_spooldir;
}

std::optional<Leases> load_leases(const LeaseQuestion& question) {
  hurry();
  const NodeSet job(job_nodes(question));
  const bool is_known = job.has(question.node.c_str());
  const bool asks_all =
      is_known && job.size() > 1 && (question.is_only_one || job.size() <= kMostNodes);
  const NodesPtr nodes = asks_all ? load_all() : load_one(question.node);
  if (nodes == nullptr) return std::nullopt;
  Leases leases{.is_whole = asks_all || (is_known && job.size() == 1)};
  for (std::uint32_t i = 0; i < nodes->record_count; ++i) {
    const node_info_t& node = nodes->node_array[i];
    if (node.name == nullptr || node.extra == nullptr) continue;
    if (asks_all ? !job.has(node.name) : node.name != question.node) continue;
    if (auto lease = read_lease(node.extra)) leases.items.push_back(std::move(*lease));
  }
  return leases;
}

}  // namespace flex::plugin
