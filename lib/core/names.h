// SPDX-License-Identifier: GPL-2.0-or-later
// Strong name types, and how the names of groups and requests are built (pure).
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// A name of one sort of thing: a MIG's name cannot be passed as a node's.
template <class Tag>
struct Name {
  std::string text{};
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the defaulted <=> for a 0
  friend auto operator<=>(const Name&, const Name&) = default;

  [[nodiscard]] bool empty() const { return text.empty(); }
};

using NodeName = Name<struct NodeTag>;        ///< a Slurm node, and the VM behind it
using MigName = Name<struct MigTag>;          ///< a managed instance group
using RequestName = Name<struct RequestTag>;  ///< a resize request in a group

using JobId = std::uint32_t;  ///< 0: nodes that no job asked for

/// The longest name Compute Engine takes (RFC 1035).
inline constexpr std::size_t kMaxNameLength = 63;
/// VMs in one regional group, and VMs in one request or one deleteInstances call.
inline constexpr std::size_t kMaxGroupSize = 2000;
inline constexpr std::size_t kMaxRequestSize = 1000;

/// [a-z]([-a-z0-9]*[a-z0-9])?, at most 63 characters.
[[nodiscard]] bool is_rfc1035(std::string_view name);

/// Lower case, other characters to '-', a letter in front; cut to `limit` characters ending in a
/// hash of the whole text where something had to be changed or cut, so that two different texts
/// never give the same name.
[[nodiscard]] std::string to_rfc1035(std::string_view text, std::size_t limit = kMaxNameLength);

/// 64-bit FNV-1a over the parts, with a separator that no part can imitate, as `digits` base-36
/// digits.
[[nodiscard]] std::string short_hash(const std::vector<std::string>& parts,
                                     std::size_t digits = 10);

/// Prefix of the names of all groups of a cluster's nodeset: "<cluster>-<nodeset>".
/// `part` 0 is the nodeset's first group, part 1 is "-2" and so on (kMaxGroupSize nodes each). With
/// a variant it is "<cluster>-<nodeset>-<variant>", for what a nodeset's own group cannot hold.
[[nodiscard]] MigName nodeset_group_name(std::string_view cluster,
                                         std::string_view nodeset,
                                         std::size_t part = 0,
                                         std::string_view variant = {});

/// "<cluster>-<nodeset>-j<jobid>"; `part` and `variant` as above.
[[nodiscard]] MigName job_group_name(std::string_view cluster,
                                     std::string_view nodeset,
                                     JobId job,
                                     std::size_t part = 0,
                                     std::string_view variant = {});

/// What every group name of the nodeset starts with, also where the name had to be cut: for list
/// filters, never for ownership.
[[nodiscard]] std::string group_name_prefix(std::string_view cluster, std::string_view nodeset);

/// What the names of all groups of the cluster start with: for list filters, never for ownership
/// (what "hpc" has here, "hpc-a" has, too).
[[nodiscard]] std::string cluster_name_prefix(std::string_view cluster);

/// What a request's name stands for. Two requests with the same key are the same request.
struct RequestKey {
  std::string cluster{};
  std::string nodeset{};
  JobId job = 0;
  std::uint32_t restart_count = 0;
  std::uint32_t attempt = 1;
  std::vector<NodeName> nodes{};
};

/// "j<jobid>-<hash>".
[[nodiscard]] RequestName request_name(const RequestKey& key);

/// The mark in a group's description that makes it ours: "slurm-flex-start cluster=<cluster>
/// nodeset=<nodeset>".
[[nodiscard]] std::string ownership_mark(std::string_view cluster, std::string_view nodeset);

/// What a group's description says after the mark: "kind=individual", "step=1", "job=12", …; as
/// Google may call every group individual that is not said to be otherwise, its kind stands there.
/// 0 if the key is not there, or has no number.
[[nodiscard]] std::uint32_t described_number(std::string_view description, std::string_view key);
inline constexpr std::string_view kIndividualMark = " kind=individual";

/// True if `description` is, or starts with, the mark of exactly this cluster and nodeset.
[[nodiscard]] bool is_owned(std::string_view description,
                            std::string_view cluster,
                            std::string_view nodeset);

/// The nodeset in a description that is, or starts with, a mark of exactly this cluster; nothing if
/// it is not ours.
[[nodiscard]] std::optional<std::string> owned_nodeset(std::string_view description,
                                                       std::string_view cluster);

}  // namespace flex

template <class Tag>
struct std::hash<flex::Name<Tag>> {
  std::size_t operator()(const flex::Name<Tag>& name) const noexcept {
    return std::hash<std::string>{}(name.text);
  }
};

template <class Tag>
struct fmt::formatter<flex::Name<Tag>> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const flex::Name<Tag>& name, Context& ctx) const {
    return fmt::formatter<std::string_view>::format(name.text, ctx);
  }
};
