// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/metrics.h"

#include "lib/core/names.h"
#include "lib/fleet/calls.h"
#include "lib/fleet/groups.h"
#include "lib/gce/errors.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/metrics_gauges.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flex {

namespace {

using prometheus::Counter;
using prometheus::Histogram;
using prometheus::Registry;
using Counters = prometheus::Family<Counter>;
using Histograms = prometheus::Family<Histogram>;
using Buckets = Histogram::BucketBoundaries;

/// Google's queue: minutes to days.
const Buckets& wait_buckets() {
  static const Buckets buckets{
      60, 300, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400, 172800, 345600, 604800};
  return buckets;
}

const Buckets& call_buckets() {
  static const Buckets buckets{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
  return buckets;
}

const Buckets& round_buckets() {
  static const Buckets buckets{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120};
  return buckets;
}

/// What other programs write may be anything: only these become labels.
constexpr std::array<std::string_view, 23> kEvents{
    "asked",         "attempt",          "cancel_request", "cancelled",     "delete_instances",
    "failed",        "given_back",       "job_ended",      "job_started",   "left_to_sweeper",
    "not_requested", "not_suspended",    "pause",          "queued",        "registered",
    "requested",     "requested_before", "resume",         "resume_failed", "succeeded",
    "suspend",       "vm_gone",          "vm_up"};
constexpr std::array<std::string_view, 5> kPrograms{
    "flex-resume", "flex-suspend", "flex-resume-fail", "flex-sweeper", "flexctl"};
constexpr std::array<std::string_view, 3> kResults{"ok", "failed", "again"};

template <class List>
std::string one_of(const List& known, std::string_view word) {
  const bool is_known = std::find(known.begin(), known.end(), word) != known.end();
  return is_known ? std::string(word) : "other";
}

/// Of an action. What is asked for is told in flex-resume's words.
std::string result_of(const Event& event) {
  if (const auto told = event.more.find("result"); told != event.more.end())
    return one_of(kResults, told->second);
  if (event.what == "left_to_sweeper") return "again";
  return event.what == "not_requested" ? "failed" : "ok";
}

/// A word of somebody else's as a label. The first few kinds of them are told apart.
std::string label_of(const std::string& word,
                     std::set<std::string>& known,
                     bool (*is_letter)(char)) {
  constexpr std::size_t kMostWords = 50;
  constexpr std::size_t kLongest = 64;
  const bool is_word =
      !word.empty() && word.size() <= kLongest && std::all_of(word.begin(), word.end(), is_letter);
  if (!is_word || (known.size() >= kMostWords && !known.contains(word))) return "other";
  known.insert(word);
  return word;
}

/// A code of Google's: SOME_WORDS.
bool is_in_code(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// "regionInstanceGroupManagers.list"
bool is_in_method(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
}

/// How a request was when it was last seen.
struct LastSeen {
  RequestState state = RequestState::Unknown;
  std::string attempt{};  ///< what Google said last
};

std::string text_of(const std::optional<ProviderError>& attempt) {
  return attempt ? attempt->code + " " + attempt->message : std::string{};
}

}  // namespace

struct Metrics::Impl {
  Registry registry{};
  Counters& calls = counters("flex_start_api_calls_total",
                             "HTTP requests to the Compute API; status 0: no answer.");
  Counters& retries =
      counters("flex_start_api_retries_total", "Of those, the ones that were repetitions.");
  Histograms& call_time =
      histograms("flex_start_api_call_duration_seconds", "The sweeper's own calls.");
  Counters& actions =
      counters("flex_start_actions_total", "What the sweeper has done, by rule and result.");
  Counters& events =
      counters("flex_start_events_total", "Events in the history, by program and kind.");
  Counters& rounds = counters("flex_start_rounds_total",
                              "Rounds: complete, failed (an action did), incomplete, passive.");
  Histograms& round_time = histograms("flex_start_round_duration_seconds", "How long rounds take.");
  Counters& created =
      counters("flex_start_requests_created_total", "Requests that were seen for the first time.");
  Counters& attempts = counters("flex_start_request_attempts_total",
                                "Google tried to serve a request and said why it could not.");
  Counters& failures =
      counters("flex_start_request_failures_total", "Requests that failed for good.");
  Histograms& queue_wait = histograms("flex_start_queue_wait_seconds",
                                      "From a request's creation until all of its VMs are there.");
  Histograms& boot_time = histograms("flex_start_resume_to_up_seconds",
                                     "From slurmctld's wish for a node until the node is up.");

  std::set<std::string> codes{};
  std::set<std::string> methods{};
  std::unordered_map<std::string, LastSeen> requests{};  ///< "group/request"
  std::unordered_map<NodeName, TimePoint> coming{};      ///< since when slurmctld wants them up
  bool has_looked = false;

  Counters& counters(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }

  Histograms& histograms(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  void count_calls(const std::string& program, const std::string& method, int status, double n) {
    calls
        .Add({{"program", program},
              {"method", label_of(method, methods, is_in_method)},
              {"status", std::to_string(status)}})
        .Increment(n);
  }

  void begin(const Config& config);
  void look_at(const SweptGroup& group, const ResizeRequest& request, TimePoint now);
  void look_at(const NodePicture& node, const std::string& nodeset, TimePoint now);
  void count_error(Counters& counters, const std::string& nodeset, const ProviderError& error);
};

void Metrics::Impl::count_error(Counters& counters,
                                const std::string& nodeset,
                                const ProviderError& error) {
  counters
      .Add({{"nodeset", nodeset},
            {"kind", std::string(to_string(to_error(error).kind))},
            {"code", label_of(error.code, codes, is_in_code)}})
      .Increment();
}

/// What has not happened yet is 0 and not unknown: a rise from nothing is none for Prometheus.
void Metrics::Impl::begin(const Config& config) {
  for (const NodesetConfig& set : config.nodesets) {
    const prometheus::Labels labels{{"nodeset", set.name}};
    created.Add(labels);
    queue_wait.Add(labels, wait_buckets());
    boot_time.Add(labels, wait_buckets());
  }
}

/// At the first look everything is old.
void Metrics::Impl::look_at(const SweptGroup& group, const ResizeRequest& request, TimePoint now) {
  const auto [at, is_new] = requests.try_emplace(group.group.name.text + "/" + request.name.text);
  LastSeen& seen = at->second;
  const LastSeen before =
      std::exchange(seen, {.state = request.state, .attempt = text_of(request.last_attempt)});
  if (!has_looked) return;
  const std::string& nodeset = group.nodeset;
  if (is_new) created.Add({{"nodeset", nodeset}}).Increment();
  if (request.last_attempt && before.attempt != seen.attempt)
    count_error(attempts, nodeset, *request.last_attempt);
  if (before.state == request.state && !is_new) return;
  if (request.state == RequestState::Failed)
    count_error(failures, nodeset, request.error.value_or(ProviderError{}));
  if (request.state == RequestState::Succeeded && request.created != TimePoint{})
    queue_wait.Add({{"nodeset", nodeset}}, wait_buckets())
        .Observe(static_cast<double>((now - request.created).count()));
}

void Metrics::Impl::look_at(const NodePicture& node, const std::string& nodeset, TimePoint now) {
  if (node.is_coming_up()) {
    // Since when, is known only of those that began after us.
    coming.try_emplace(node.name, has_looked ? now : TimePoint{});
    return;
  }
  const auto began = coming.find(node.name);
  if (began == coming.end()) return;
  const bool is_well = node.node != nullptr && is_up(*node.node) && !is_down(*node.node);
  if (began->second != TimePoint{} && node.has_vm() && is_well)
    boot_time.Add({{"nodeset", nodeset}}, wait_buckets())
        .Observe(static_cast<double>((now - began->second).count()));
  coming.erase(began);
}

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  for (const std::string_view result : {"complete", "failed", "incomplete", "passive"})
    impl_->rounds.Add({{"result", std::string(result)}});
}

Metrics::~Metrics() = default;

void Metrics::note_call(const CallNote& note) {
  impl_->count_calls("flex-sweeper", std::string(note.method), note.status, 1);
  if (note.is_retry) impl_->retries.Add({{"program", "flex-sweeper"}}).Increment();
  impl_->call_time.Add({{"method", std::string(note.method)}}, call_buckets())
      .Observe(std::chrono::duration<double>(note.took).count());
}

void Metrics::note_event(const Event& event) {
  const std::string program = one_of(kPrograms, event.program);
  if (event.what == "calls") {
    const CallCounts told = calls_in(event);
    for (const CallCount& each : told.calls)
      impl_->count_calls(program, each.method, each.status, static_cast<double>(each.count));
    if (told.retries > 0)
      impl_->retries.Add({{"program", program}}).Increment(static_cast<double>(told.retries));
    return;
  }
  // The sweeper's own have been counted when they were done; flexctl's have a rule, too.
  if (!event.rule.empty() && event.program == "flex-sweeper") return;
  impl_->events.Add({{"program", program}, {"what", one_of(kEvents, event.what)}}).Increment();
  if (event.what != "asked") return;
  // flex-resume knows the moment; the look would find it later. It is run again while a node waits,
  // to keep it from ResumeTimeout: only the first time counts, even if nobody knows when that was.
  if (const auto nodes = expand_hostlist(event.nodes)) {
    for (const NodeName& node : *nodes) impl_->coming.try_emplace(node, event.when);
  }
}

void Metrics::note_action(const Event& event) {
  if (event.rule.empty()) return;
  impl_->actions.Add({{"rule", event.rule}, {"what", event.what}, {"result", result_of(event)}})
      .Increment();
}

void Metrics::forget_looks() {
  impl_->requests.clear();
  impl_->coming.clear();
  impl_->has_looked = false;
}

void Metrics::note_look(const Config& config, const Snapshot& shot) {
  impl_->begin(config);
  std::set<std::string> listed;
  for (const SweptGroup& group : shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (!is_our_request(request)) continue;
      impl_->look_at(group, request, shot.now);
      listed.insert(group.group.name.text + "/" + request.name.text);
    }
  }
  std::erase_if(impl_->requests, [&](const auto& each) { return !listed.contains(each.first); });
  const Picture picture{config, shot};
  for (const NodePicture& node : picture.nodes())
    impl_->look_at(node, config.nodesets[node.nodeset].name, shot.now);
  impl_->has_looked = true;
}

void Metrics::note_round(std::string_view result, std::chrono::milliseconds took) {
  impl_->rounds.Add({{"result", std::string(result)}}).Increment();
  impl_->round_time.Add({}, round_buckets()).Observe(std::chrono::duration<double>(took).count());
}

std::string Metrics::text(const MetricsView& view) const {
  Registry gauges;
  add_gauges(gauges, view);
  std::vector<prometheus::MetricFamily> all = gauges.Collect();
  std::vector<prometheus::MetricFamily> grown = impl_->registry.Collect();
  all.insert(
      all.end(), std::make_move_iterator(grown.begin()), std::make_move_iterator(grown.end()));
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace flex
