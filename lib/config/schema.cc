// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/schema.h"

#include "lib/config/keys.h"
#include "lib/config/shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <span>

namespace flex {

namespace {

/// No real setting is longer; keeps sums far from overflow.
constexpr Seconds kYear = 366 * 24h;

using Api = Field<ApiConfig>;
using Sweeper = Field<SweeperConfig>;
using Flex = Field<DwsFlexConfig>;
using Place = Field<PlacementConfig>;
using Retry = Field<RetryConfig>;
using Step = Field<StockoutStep>;
using Nodeset = Field<NodesetConfig>;
using Top = Field<TopLevel>;

void read_endpoint(Reader& r, const Setting& s, ApiConfig& c) {
  std::string text;
  if (!r.text(s, text)) return;
  const std::string why = why_bad_endpoint(text);
  if (!why.empty()) {
    r.problems().add(s.value.mark,
                     fmt::format("endpoint {}: {}", show(text), why),
                     "write https://HOST[:PORT], or http:// with a loopback address");
    return;
  }
  if (text.ends_with('/')) text.pop_back();
  c.endpoint = text;
}

constexpr Api kApi[] = {
    {"endpoint", read_endpoint},
    {"max_in_flight",
     [](Reader& r, const Setting& s, ApiConfig& c) {
       r.number(s, {1, 256}, c.max_in_flight);
     }},
    {"max_active_requests",
     [](Reader& r, const Setting& s, ApiConfig& c) {
       r.number(s, {1, 100000}, c.max_active_requests);
     }},
    {"call_timeout",
     [](Reader& r, const Setting& s, ApiConfig& c) {
       r.duration(s, {1s, 1h}, c.call_timeout);
     }},
    {"run_timeout",
     [](Reader& r, const Setting& s, ApiConfig& c) {
       r.duration(s, {1s, 24h}, c.run_timeout);
     }},
};

bool is_full_path(std::string_view text) {
  return text.starts_with('/') && text.size() > 1;
}

constexpr Sweeper kSweeper[] = {
    {"interval",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.duration(s, {1s, 1h}, c.interval);
     }},
    {"orphan_grace",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.duration(s, {1s, kYear}, c.orphan_grace);
     }},
    {"empty_mig_grace",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.duration(s, {1s, kYear}, c.empty_mig_grace);
     }},
    {"finished_request_grace",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.duration(s, {1s, kYear}, c.finished_request_grace);
     }},
    {"note_interval",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.duration(s, {1s, kYear}, c.note_interval);
     }},
    {"max_deletes_per_round",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.number(s, {0, 100000}, c.max_deletes_per_round);
     }},
    {"state_dir",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.shaped(s, is_full_path, "write the full path of a directory", c.state_dir);
     }},
    {"listen",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.shaped(s, is_listen_setting, "write HOST:PORT, like 127.0.0.1:9762, or off", c.listen);
     }},
    {"listen_token_file",
     [](Reader& r, const Setting& s, SweeperConfig& c) {
       r.shaped(s, is_full_path, "write the full path of a file", c.listen_token_file);
     }},
};

constexpr Flex kFlex[] = {
    {"enabled",
     [](Reader& r, const Setting& s, DwsFlexConfig& c) {
       r.boolean(s, c.enabled);
       if (c.enabled) return;
       r.problems().add(s.value.mark,
                        "nodesets without Flex Start are not available yet",
                        "remove the key, or the nodeset");
     }},
    {"max_run_duration",
     [](Reader& r, const Setting& s, DwsFlexConfig& c) {
       // The least depends on the mode: validate.cc.
       r.duration(s, {kMinBulkDuration, kMaxRunDuration}, c.max_run_duration);
     }},
    {"use_job_duration",
     [](Reader& r, const Setting& s, DwsFlexConfig& c) { r.boolean(s, c.use_job_duration); }},
    {"use_bulk_insert",
     [](Reader& r, const Setting& s, DwsFlexConfig& c) { r.boolean(s, c.use_bulk_insert); }},
};

constexpr Place kPlacement[] = {
    {"max_distance",
     [](Reader& r, const Setting& s, PlacementConfig& c) {
       std::size_t distance = 0;
       r.number(s, {1, 3}, distance);
       c.max_distance = static_cast<int>(distance);
     }},
    {"accelerator_topology",
     [](Reader& r, const Setting& s, PlacementConfig& c) {
       r.shaped(s, is_topology, "a topology is like 4x4", c.accelerator_topology);
     }},
};

constexpr Retry kRetry[] = {
    {"limit",
     [](Reader& r, const Setting& s, RetryConfig& c) {
       r.number(s, {0, 1000}, c.limit);
     }},
    {"base",
     [](Reader& r, const Setting& s, RetryConfig& c) {
       r.duration(s, {1s, kYear}, c.base);
     }},
    {"max",
     [](Reader& r, const Setting& s, RetryConfig& c) {
       r.duration(s, {1s, kYear}, c.max);
     }},
};

/// Into a Mode, or into what may have none.
template <class Out>
void choose_mode(Reader& r, const Setting& s, Out& out) {
  Mode mode = Mode::Queued;
  if (r.choice<Mode>(s,
                     {{"queued", Mode::Queued},
                      {"individual", Mode::Individual},
                      {"bulk_insert", Mode::BulkInsert}},
                     mode))
    out = mode;
}

void read_reservation(Reader& r, const Setting& s, NodesetConfig& c) {
  if (!r.text(s, c.reservation)) return;
  r.marks->set("reservation", s.value.mark);
}

void read_flex(Reader& r, const Setting& s, NodesetConfig& c);
void read_placement(Reader& r, const Setting& s, NodesetConfig& c);
void read_retry(Reader& r, const Setting& s, NodesetConfig& c);
void read_on_stockout(Reader& r, const Setting& s, NodesetConfig& c);

constexpr std::string_view kTemplateHint =
    "write a name, global/instanceTemplates/NAME, regions/REGION/instanceTemplates/NAME or a full "
    "URL";

constexpr Step kStep[] = {
    {"wait",
     [](Reader& r, const Setting& s, StockoutStep& c) {
       r.duration(s, {1s, kYear}, c.wait);
     }},
    {"zones", [](Reader& r, const Setting& s, StockoutStep& c) { r.zones(s, c.zones); }},
    {"mode", [](Reader& r, const Setting& s, StockoutStep& c) { choose_mode(r, s, c.mode); }},
    {"instance_template",
     [](Reader& r, const Setting& s, StockoutStep& c) {
       r.shaped(s, is_template, kTemplateHint, c.instance_template);
     }},
};

constexpr std::string_view kStepHint = "write - {wait: 30m, zones: [us-central1-b]}";
/// More than anybody wants to wait through.
constexpr std::size_t kMaxSteps = 16;
/// More than the nodes of any cluster.
constexpr std::size_t kManyNodes = 1000000;

/// These two first: they cannot be in `defaults`.
constexpr std::size_t kNodeKeys = 2;

constexpr Nodeset kNodeset[] = {
    {"nodes", [](Reader& r, const Setting& s, NodesetConfig& c) { r.hostlist(s, c.nodes); }},
    {"static_nodes",
     [](Reader& r, const Setting& s, NodesetConfig& c) { r.hostlist(s, c.static_nodes); }},
    {"instance_template",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.shaped(s, is_template, kTemplateHint, c.instance_template);
     }},
    {"zones", [](Reader& r, const Setting& s, NodesetConfig& c) { r.zones(s, c.zones); }},
    {"mode", [](Reader& r, const Setting& s, NodesetConfig& c) { choose_mode(r, s, c.mode); }},
    {"mig_scope",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.choice<MigScope>(s, {{"nodeset", MigScope::Nodeset}, {"job", MigScope::Job}}, c.mig_scope);
     }},
    {"dws_flex", read_flex},
    {"run_duration_margin",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.duration(s, {0s, kMaxRunDuration}, c.run_duration_margin);
     }},
    {"provision_timeout",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.duration(s, {0s, kYear}, c.provision_timeout);
     }},
    {"on_timeout",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.choice<OnTimeout>(s,
                           {{"requeue", OnTimeout::Requeue},
                            {"hold", OnTimeout::Hold},
                            {"cancel", OnTimeout::Cancel}},
                           c.on_timeout);
     }},
    {"boot_timeout",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.duration(s, {1s, kMaxRunDuration}, c.boot_timeout);
     }},
    {"max_boot_failures",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.number(s, {1, 1000}, c.max_boot_failures);
     }},
    {"incomplete_timeout",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.duration(s, {0s, kYear}, c.incomplete_timeout);
     }},
    {"retry", read_retry},
    {"placement", read_placement},
    {"machine_type",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.shaped(s, is_machine_type, "a machine type is like a3-ultragpu-8g", c.machine_type);
     }},
    {"max_nodes",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.number(s, {0, kManyNodes}, c.max_nodes);
     }},
    {"race",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.number(s, {1, kMaxZones}, c.race);
     }},
    {"on_stockout", read_on_stockout},
    {"resubmit_after",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.duration(s, {0s, kYear}, c.resubmit_after);
     }},
    {"lease_warning",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.duration(s, {0s, kMaxRunDuration}, c.lease_warning);
     }},
    {"lease_signal",
     [](Reader& r, const Setting& s, NodesetConfig& c) { r.signal(s, c.lease_signal); }},
    {"repair_reasons",
     [](Reader& r, const Setting& s, NodesetConfig& c) { r.texts(s, c.repair_reasons); }},
    {"max_repairs",
     [](Reader& r, const Setting& s, NodesetConfig& c) {
       r.number(s, {1, 1000}, c.max_repairs);
     }},
    {"reservation", read_reservation},
    {"reservation_name", read_reservation},
};

void read_api(Reader& r, const Setting& s, TopLevel& t);
void read_sweeper(Reader& r, const Setting& s, TopLevel& t);

void read_credentials(Reader& r, const Setting& s, TopLevel& t) {
  const auto is_good = [](std::string_view text) {
    return text == "auto" || text == "metadata" || is_full_path(text);
  };
  r.shaped(s, is_good, "write auto, metadata or the full path of a key file", t.config.credentials);
}

constexpr Top kTop[] = {
    {"cluster",
     [](Reader& r, const Setting& s, TopLevel& t) {
       r.shaped(s,
                is_cluster_name,
                "as in slurm.conf: lower-case letters, digits, '-' and '_', at most 40",
                t.config.cluster);
     }},
    {"project",
     [](Reader& r, const Setting& s, TopLevel& t) {
       r.shaped(s, is_project, "write the project's id, like my-project", t.config.project);
     }},
    {"region",
     [](Reader& r, const Setting& s, TopLevel& t) {
       r.shaped(s,
                is_region,
                is_zone(s.value.text) ? "that is a zone; its region is without the last '-x'"
                                      : "a region is like us-central1",
                t.config.region);
     }},
    {"api", read_api},
    {"credentials", read_credentials},
    {"sweeper", read_sweeper},
    {"defaults",
     [](Reader& r, const Setting& s, TopLevel& t) {
       if (r.map(s)) t.defaults = &s.value;
     }},
    {"nodesets",
     [](Reader& r, const Setting& s, TopLevel& t) {
       if (r.map(s)) t.nodesets = &s.value;
     }},
};

template <class T>
void append(std::vector<std::string>& keys,
            std::string_view prefix,
            std::span<const Field<T>> fields) {
  for (const Field<T>& field : fields) keys.push_back(fmt::format("{}{}", prefix, field.name));
}

/// Where else in the file the key would be right; empty: nowhere.
std::string belongs_to(std::string_view name) {
  for (const std::string& key : schema_keys()) {
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) {
      if (key == name) return "the top level";
      continue;
    }
    if (key.substr(dot + 1) == name) return fmt::format("'{}'", key.substr(0, dot));
  }
  return {};
}

template <class T>
void refuse_key(Reader& reader, const TreeNode& key, std::span<const Field<T>> fields) {
  std::vector<std::string_view> names;
  for (const Field<T>& field : fields) names.push_back(field.name);
  std::string hint = belongs_to(key.text);
  if (!hint.empty()) {
    hint = "it belongs in " + hint;
  } else if (const auto near = nearest(key.text, names); !near.empty()) {
    hint = fmt::format("did you mean '{}'?", near);
  } else {
    hint = fmt::format("known here: {}", fmt::join(names, ", "));
  }
  reader.problems().add(key.mark, fmt::format("unknown key {}", show(key.text)), hint);
}

template <class T>
void read_fields(Reader& reader, const TreeNode& map, std::span<const Field<T>> fields, T& out) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const Setting setting{map.keys[i], map.items[i]};
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field<T>& known) {
      return known.name == setting.key.text;
    });
    if (field == fields.end()) {
      refuse_key(reader, setting.key, fields);
      continue;
    }
    const bool is_null = setting.value.kind == TreeNode::Kind::Null;
    // An empty value's own mark is where the next thing starts.
    reader.marks->set(reader.prefix + setting.key.text,
                      is_null ? setting.key.mark : setting.value.mark);
    if (is_null) {
      reader.problems().add(setting.key.mark,
                            fmt::format("{} has no value", show(setting.key.text)),
                            "give it one or remove the key");
      continue;
    }
    field->read(reader, setting, out);
  }
}

/// A section inside the one being read.
template <class T>
void read_section(Reader& reader,
                  const Setting& setting,
                  std::span<const Field<T>> fields,
                  T& out) {
  if (!reader.map(setting)) return;
  const std::string outer = reader.prefix;
  reader.prefix += setting.key.text + ".";
  read_fields(reader, setting.value, fields, out);
  reader.prefix = outer;
}

void read_flex(Reader& r, const Setting& s, NodesetConfig& c) {
  read_section<DwsFlexConfig>(r, s, kFlex, c.dws_flex);
}

/// A nodeset that asks for one of the two is not held to the other one of `defaults`.
void read_placement(Reader& r, const Setting& s, NodesetConfig& c) {
  for (const TreeNode& key : s.value.keys) {
    if (key.text != "max_distance" && key.text != "accelerator_topology") continue;
    c.placement = {};
    r.marks->drop("placement.max_distance");
    r.marks->drop("placement.accelerator_topology");
  }
  read_section<PlacementConfig>(r, s, kPlacement, c.placement);
}

void read_retry(Reader& r, const Setting& s, NodesetConfig& c) {
  read_section<RetryConfig>(r, s, kRetry, c.retry);
}

/// The steps have the prefixes "on_stockout.0.", "on_stockout.1.", …
void read_on_stockout(Reader& r, const Setting& s, NodesetConfig& c) {
  if (!r.list(s, kMaxSteps, "steps", kStepHint)) return;
  c.on_stockout.clear();
  const std::string outer = r.prefix;
  for (const TreeNode& item : s.value.items) {
    if (item.kind == TreeNode::Kind::Bad) continue;
    const Mark mark = item.kind == TreeNode::Kind::Null ? s.value.mark : item.mark;
    if (item.kind != TreeNode::Kind::Map) {
      r.problems().add(mark, "a step of 'on_stockout' must be a section", std::string(kStepHint));
      continue;
    }
    const std::string name = fmt::format("on_stockout.{}", c.on_stockout.size());
    r.marks->set(outer + name, mark);
    c.on_stockout.emplace_back();
    r.prefix = outer + name + ".";
    read_fields<StockoutStep>(r, item, kStep, c.on_stockout.back());
  }
  r.prefix = outer;
}

void read_api(Reader& r, const Setting& s, TopLevel& t) {
  read_section<ApiConfig>(r, s, kApi, t.config.api);
}

void read_sweeper(Reader& r, const Setting& s, TopLevel& t) {
  read_section<SweeperConfig>(r, s, kSweeper, t.config.sweeper);
}

}  // namespace

void read_top_level(Reader& reader, const TreeNode& map, TopLevel& out) {
  read_fields<TopLevel>(reader, map, kTop, out);
}

void read_nodeset(Reader& reader, const TreeNode& map, NodesetConfig& out) {
  read_fields<NodesetConfig>(reader, map, kNodeset, out);
}

void read_defaults(Reader& reader, const TreeNode& map, NodesetConfig& out) {
  read_fields<NodesetConfig>(reader, map, std::span(kNodeset).subspan(kNodeKeys), out);
}

std::vector<std::string> schema_keys() {
  std::vector<std::string> keys;
  append<TopLevel>(keys, "", kTop);
  append<ApiConfig>(keys, "api.", kApi);
  append<SweeperConfig>(keys, "sweeper.", kSweeper);
  append<NodesetConfig>(keys, "nodesets.NAME.", kNodeset);
  append<DwsFlexConfig>(keys, "nodesets.NAME.dws_flex.", kFlex);
  append<RetryConfig>(keys, "nodesets.NAME.retry.", kRetry);
  append<PlacementConfig>(keys, "nodesets.NAME.placement.", kPlacement);
  append<StockoutStep>(keys, "nodesets.NAME.on_stockout.", kStep);
  return keys;
}

}  // namespace flex
