// SPDX-License-Identifier: GPL-2.0-or-later
// What single values must look like (pure).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flex {

/// "us-central1".
[[nodiscard]] bool is_region(std::string_view text);

/// "us-central1-a", and the AI zones' "us-south1-ai1b".
[[nodiscard]] bool is_zone(std::string_view text);

/// What a zone has after its region's name: "a", "ai1b".
[[nodiscard]] bool is_zone_end(std::string_view text);

/// The region of a zone: "us-central1" for "us-central1-a".
[[nodiscard]] std::string region_of(std::string_view zone);

/// Slurm's ClusterName: lower-case letters, digits, '-', '_', at most 40.
[[nodiscard]] bool is_cluster_name(std::string_view text);

/// A project's id, also "example.com:name".
[[nodiscard]] bool is_project(std::string_view text);

/// Empty if the address may be used: https, or plain http to this machine; else why not.
[[nodiscard]] std::string why_bad_endpoint(std::string_view text);

/// "name", "[projects/P/]global/instanceTemplates/name", "[projects/P/]regions/R/instanceTemplates/
/// name" or the full URL of one.
[[nodiscard]] bool is_template(std::string_view text);

/// The region that a template is in; empty: global, or not said.
[[nodiscard]] std::string template_region(std::string_view text);

/// Where to listen; port 0: any free one.
struct ListenAddress {
  std::string host{};  ///< IPv6 without brackets
  int port = 0;
  bool is_loopback = false;
};

/// "127.0.0.1:9762", "[::1]:9762", "host:0"; nothing for any other text, "off" among it.
[[nodiscard]] std::optional<ListenAddress> parse_listen(std::string_view text);

/// What parse_listen takes, or "off".
[[nodiscard]] bool is_listen_setting(std::string_view text);

/// True for a Host header that names this machine itself: "localhost:9762", "127.0.0.1", "[::1]".
[[nodiscard]] bool is_loopback_authority(std::string_view text);

/// "a3-ultragpu-8g".
[[nodiscard]] bool is_machine_type(std::string_view text);

/// True for the machine types whose Flex Start VMs can be placed near each other.
[[nodiscard]] bool can_be_placed(std::string_view machine_type);

/// "4x4", "2x2x4".
[[nodiscard]] bool is_topology(std::string_view text);

/// The number of a signal that a process can catch, by its name with or without SIG in any case; 0
/// for "none"; nothing for any other text.
[[nodiscard]] std::optional<int> signal_number(std::string_view name);

/// True for the signals that no process can catch.
[[nodiscard]] bool is_deaf_signal(std::string_view name);

/// "HUP, INT, …": what signal_number knows.
[[nodiscard]] std::string signal_names();

}  // namespace flex
