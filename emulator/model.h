// SPDX-License-Identifier: GPL-2.0-or-later
// The emulated cloud's state: plain structs. Times are virtual seconds unless a name says wall.
#pragma once

#include "emulator/json.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace flex::emulator {

/// Where a resource lives: a project and "global", "regions/R" or "zones/Z".
struct Place {
  std::string project{};
  std::string scope{};

  [[nodiscard]] bool is_regional() const { return scope.starts_with("regions/"); }

  [[nodiscard]] bool is_zonal() const { return scope.starts_with("zones/"); }

  /// "us-central1", "us-central1-a" or "global".
  [[nodiscard]] std::string location() const { return scope.substr(scope.find('/') + 1); }

  /// "project/scope/name": unique, and all of a place's resources sort together.
  [[nodiscard]] std::string key(const std::string& name) const {
    return project + "/" + scope + "/" + name;
  }
};

enum class VmStatus { Pending, Provisioning, Staging, Running, Stopping };

struct Vm {
  std::string project{};
  std::string zone{};
  std::string name{};
  std::uint64_t id = 0;
  VmStatus status = VmStatus::Provisioning;
  double created = 0;
  double ends = 0;  ///< 0: no end set
  double boot_wall = 0;
  std::string group{};  ///< key of its group, or empty
  std::string template_key{};
  Json body = Json::object();  ///< what a standalone VM was asked with
  bool is_up = false;          ///< the hook has been told

  [[nodiscard]] Place place() const { return {project, "zones/" + zone}; }

  [[nodiscard]] std::string key() const { return place().key(name); }
};

enum class MemberAction { None, Creating, Deleting };

/// An entry in a group's list of managed instances.
struct Member {
  std::string request{};  ///< the resize request that asked for it, or empty
  std::string zone{};     ///< empty while it waits
  MemberAction action = MemberAction::Creating;
  Json error{};  ///< why it still waits
};

enum class RequestState { Creating, Accepted, Succeeded, Failed, Cancelled };

struct Request {
  std::string name{};
  std::uint64_t id = 0;
  std::string description{};
  bool has_names = false;  ///< asked by instances[], not by resizeBy
  std::vector<std::string> nodes{};
  std::int64_t run_seconds = 0;
  RequestState state = RequestState::Creating;
  double created = 0;
  double finished = 0;
  bool is_cancelling = false;
  Json error{};
  Json last_attempt{};

  [[nodiscard]] bool is_active() const {
    return state == RequestState::Creating || state == RequestState::Accepted;
  }
};

struct Group {
  Place place{};
  std::string name{};
  std::uint64_t id = 0;
  double created = 0;
  Json body = Json::object();  ///< the caller's fields, given back as they are
  std::string template_key{};
  std::string template_url{};
  std::vector<std::string> zones{};
  bool is_ready = false;
  bool is_deleting = false;
  std::int64_t target_size = 0;
  std::map<std::string, Member> members{};
  std::map<std::string, Request> requests{};

  [[nodiscard]] std::string key() const { return place.key(name); }
};

/// A template or a policy: stored as it was given.
struct Thing {
  Place place{};
  std::string name{};
  std::uint64_t id = 0;
  double created = 0;
  Json body = Json::object();
};

enum class OperationStatus { Pending, Running, Done };

/// What an operation does when it ends.
enum class Effect {
  None,
  GroupReady,
  GroupGone,
  RequestAccepted,
  RequestCancelled,
  RequestGone,
  MembersGone,
  GroupFill,
  VmsPlaced,
  VmGone,
  ThingMade,
  ThingGone,
};

struct Operation {
  Place place{};
  std::string name{};
  std::uint64_t id = 0;
  std::string type{};
  std::string target{};  ///< path of the resource: "projects/…"
  std::uint64_t target_id = 0;
  double inserted = 0;
  double ended = 0;
  double due_wall = 0;
  OperationStatus status = OperationStatus::Running;
  Json error{};
  Json metadata{};  ///< instancesBulkInsertOperationMetadata
  Effect effect = Effect::None;
  std::string subject{};             ///< key of the group, VM, template or policy
  std::string request{};             ///< resize request in it; collection of a thing
  std::vector<std::string> names{};  ///< VMs
  Json plan{};                       ///< of VmsPlaced: zones, min, run_seconds, template, body
  Json fault{};                      ///< error it is to end with
  Json request_fault{};              ///< error the request is to end with

  [[nodiscard]] std::string key() const { return place.key(name); }
};

[[nodiscard]] std::string_view to_string(VmStatus status);
[[nodiscard]] std::string_view to_string(RequestState state);
[[nodiscard]] std::string_view to_string(OperationStatus status);
[[nodiscard]] std::string_view to_string(MemberAction action);

}  // namespace flex::emulator
