// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/libslurm_scheduler.h"

#include "lib/slurm/accounting.h"
#include "lib/slurm/compat.h"
#include "lib/slurm/conf_file.h"
#include "lib/slurm/controller.h"
#include "lib/slurm/convert.h"
#include "lib/slurm/errors.h"
#include "lib/slurm/handles.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/job_signal.h"
#include "lib/slurm/reservation.h"

#include <fmt/format.h>
#include <slurm/slurm_errno.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

namespace flex {
namespace {

// SHOW_LOCAL saves the question for a federation before each list.
constexpr std::uint16_t kShow = SHOW_ALL | SHOW_LOCAL;
// Up to here it is cheaper to ask for each job than for all of them.
constexpr std::size_t kFewJobs = 8;
// libslurm tries for MessageTimeout to reach slurmctld, and waits half of SlurmctldTimeout for a
// backup to take over. slurmctld ends its programs after their own timeouts, so neither may be
// long.
constexpr std::uint16_t kMaxPatience = 20;
// How long a list may be believed that is only asked for its changes.
constexpr std::chrono::minutes kFullRefresh{1};

std::uint32_t to_state(NodeRequest request) {
  switch (request) {
    case NodeRequest::PowerUp:
      return NODE_STATE_POWER_UP;
    case NodeRequest::PowerDown:
      return NODE_STATE_POWER_DOWN;
    case NodeRequest::PowerDownForce:
      return NODE_STATE_POWER_DOWN | NODE_STATE_POWERED_DOWN;
    case NodeRequest::PowerDownAsap:
      return NODE_STATE_POWER_DOWN | NODE_STATE_POWER_DRAIN;
    case NodeRequest::Down:
      return NODE_STATE_DOWN;
    case NodeRequest::Idle:
      return NODE_STATE_IDLE;
    case NodeRequest::Resume:
      return NODE_RESUME;
    case NodeRequest::Drain:
      return NODE_STATE_DRAIN;
    case NodeRequest::Undrain:
      return NODE_STATE_UNDRAIN;
  }
  return NO_VAL;
}

/// Runs one load call and gives its answer to the owner; null where nothing has changed.
template <class Owner, class Call>
Result<Owner> load_change(std::string_view doing, Call&& call) {
  typename Owner::pointer raw = nullptr;
  errno = 0;
  const int number = slurm::error_number(call(&raw));
  Owner owner(raw);
  if (number == SLURM_NO_CHANGE_IN_DATA) return Owner{};
  if (number != 0) return slurm::to_error(number, doing);
  if (!owner) return Error{ErrorKind::Internal, fmt::format("{}: no answer", doing)};
  return owner;
}

/// The same for a call that asks for everything.
template <class Owner, class Call>
Result<Owner> load(std::string_view doing, Call&& call) {
  auto owner = load_change<Owner>(doing, std::forward<Call>(call));
  if (owner && !*owner) return slurm::to_error(SLURM_NO_CHANGE_IN_DATA, doing);
  return owner;
}

/// Asks for what is newer than `list` and puts it there as `copy(answer)`.
template <class Owner, class T, class Call, class Copy>
Result<bool> refresh(Listed<T>& list, std::string_view doing, Call&& call, Copy&& copy) {
  const auto now = std::chrono::steady_clock::now();
  const bool in_full = list.as_of == TimePoint{} || now - list.asked_in_full >= kFullRefresh;
  const time_t newer_than = in_full ? 0 : list.as_of.time_since_epoch().count();
  auto answer = load_change<Owner>(doing, [&](auto** raw) { return call(newer_than, raw); });
  if (!answer) return answer.error();
  if (!*answer) return false;
  list.items = copy(**answer);
  list.as_of = TimePoint{Seconds{(*answer)->last_update}};
  if (in_full) list.asked_in_full = now;
  return true;
}

std::vector<Node> copy_nodes(const node_info_msg_t& answer) {
  std::vector<Node> nodes;
  nodes.reserve(answer.record_count);
  for (const auto& node : std::span(answer.node_array, answer.record_count)) {
    // slurmctld sends an empty record for a node that it hides.
    if (node.name != nullptr && *node.name != '\0') nodes.push_back(slurm::to_node(node));
  }
  return nodes;
}

template <class Wanted>
void append_jobs(std::vector<Job>& jobs, const job_info_msg_t& answer, Wanted&& wanted) {
  for (const auto& job : std::span(answer.job_array, answer.record_count)) {
    if (wanted(slurm::job_id(job))) jobs.push_back(slurm::to_job(job));
  }
}

std::vector<Job> copy_jobs(const job_info_msg_t& answer) {
  std::vector<Job> jobs;
  jobs.reserve(answer.record_count);
  append_jobs(jobs, answer, [](JobId) { return true; });
  return jobs;
}

std::vector<Partition> copy_partitions(const partition_info_msg_t& answer, bool knows_infinite) {
  std::vector<Partition> partitions;
  partitions.reserve(answer.record_count);
  for (const auto& partition : std::span(answer.partition_array, answer.record_count)) {
    partitions.push_back(slurm::to_partition(partition, knows_infinite));
  }
  return partitions;
}

std::vector<Reservation> copy_reservations(const reserve_info_msg_t& answer) {
  std::vector<Reservation> reservations;
  reservations.reserve(answer.record_count);
  for (const auto& reservation : std::span(answer.reservation_array, answer.record_count)) {
    reservations.push_back(slurm::to_reservation(reservation));
  }
  return reservations;
}

/// The controllers in their order, the primary first.
std::vector<slurm::ControllerHost> controllers_in(const slurm_conf_t& conf) {
  std::vector<slurm::ControllerHost> hosts;
  for (std::uint32_t i = 0; i < conf.control_cnt; ++i) {
    hosts.push_back({.name = slurm::to_text(conf.control_machine[i]),
                     .address = slurm::to_text(conf.control_addr[i])});
  }
  return hosts;
}

class LibslurmScheduler final : public Scheduler {
 public:
  explicit LibslurmScheduler(const std::string& conf_file) { slurm_init(conf_file.c_str()); }

  ~LibslurmScheduler() override { slurm_fini(); }

  LibslurmScheduler(const LibslurmScheduler&) = delete;
  LibslurmScheduler& operator=(const LibslurmScheduler&) = delete;

  Result<std::string> load_cluster_name() override {
    // slurm_init has read it from the same file as slurmctld: no need to ask.
    if (&slurm_conf != nullptr && slurm_conf.cluster_name != nullptr) {
      return std::string(slurm_conf.cluster_name);
    }
    auto conf = load_conf();
    if (!conf) return conf.error();
    return slurm::to_text((*conf)->cluster_name);
  }

  Result<std::vector<Node>> load_nodes() override {
    auto answer = load<slurm::NodeInfoPtr>(
        "loading nodes", [](auto** raw) { return slurm_load_node(0, raw, kShow); });
    if (!answer) return answer.error();
    return copy_nodes(**answer);
  }

  Result<std::vector<Job>> load_jobs(std::span<const JobId> ids) override {
    std::unordered_set<JobId> wanted(ids.begin(), ids.end());
    if (wanted.size() > kFewJobs) return load_many(wanted);
    std::vector<Job> jobs;
    for (const JobId id : ids) {
      if (wanted.erase(id) == 0) continue;  // asked for already
      auto answer = load<slurm::JobInfoPtr>(fmt::format("loading job {}", id), [id](auto** raw) {
        return slurm::load_job(raw, id, kShow);
      });
      if (!answer) {
        if (answer.error().kind == ErrorKind::NotFound) continue;
        return answer.error();
      }
      // For the first task of an array, or the leader of a heterogeneous job, all of it comes.
      append_jobs(jobs, **answer, [id](JobId other) { return other == id; });
    }
    return jobs;
  }

  Result<std::vector<Job>> load_all_jobs() override {
    return load_where([](JobId) { return true; });
  }

  Result<std::vector<Partition>> load_partitions() override {
    auto answer = load<slurm::PartitionInfoPtr>(
        "loading partitions", [](auto** raw) { return slurm_load_partitions(0, raw, kShow); });
    if (!answer) return answer.error();
    return copy_partitions(**answer, knows_infinite_);
  }

  Result<bool> refresh_nodes(Listed<Node>& nodes) override {
    return refresh<slurm::NodeInfoPtr>(
        nodes,
        "loading nodes",
        [](time_t since, auto** raw) { return slurm_load_node(since, raw, kShow); },
        copy_nodes);
  }

  Result<bool> refresh_jobs(Listed<Job>& jobs) override {
    return refresh<slurm::JobInfoPtr>(
        jobs,
        "loading jobs",
        [](time_t since, auto** raw) { return slurm_load_jobs(since, raw, kShow); },
        copy_jobs);
  }

  Result<bool> refresh_partitions(Listed<Partition>& partitions) override {
    return refresh<slurm::PartitionInfoPtr>(
        partitions,
        "loading partitions",
        [](time_t since, auto** raw) { return slurm_load_partitions(since, raw, kShow); },
        [this](const auto& answer) { return copy_partitions(answer, knows_infinite_); });
  }

  Result<bool> refresh_reservations(Listed<Reservation>& reservations) override {
    return refresh<slurm::ReservationInfoPtr>(
        reservations,
        "loading reservations",
        [](time_t since, auto** raw) { return slurm_load_reservations(since, raw); },
        copy_reservations);
  }

  Result<SlurmSettings> load_settings() override {
    auto conf = load_conf();
    if (!conf) return conf.error();
    auto settings = slurm::to_settings(**conf);
    knows_infinite_ = slurm::knows_infinite(settings.version);
    return settings;
  }

  Result<Accounting> load_accounting(std::span<const std::string> users) override {
    return slurm::load_accounting(users);
  }

  Result<Controller> find_controller() override {
    auto hosts = load_controllers();
    if (!hosts) return hosts.error();
    // One that stands by answers, too, but then the one in charge is before it: a primary that
    // comes back takes over.
    std::size_t in_charge = 0;
    if (hosts->size() > 1) {
      while (in_charge < hosts->size() && slurm_ping(static_cast<int>(in_charge)) != 0) ++in_charge;
    }
    if (in_charge >= hosts->size()) return Error{ErrorKind::Retry, "no slurmctld answers"};
    const auto& host = (*hosts)[in_charge];
    return Controller{
        .is_here = slurm::is_this_host(host),
        .is_candidate = std::any_of(hosts->begin(), hosts->end(), slurm::is_this_host),
        .host = host.name};
  }

  Result<Done> update_nodes(std::span<const NodeName> nodes,
                            NodeRequest request,
                            std::string_view reason) override {
    return change_nodes(nodes, request, reason, std::nullopt);
  }

  Result<Done> update_nodes_and_extra(std::span<const NodeName> nodes,
                                      NodeRequest request,
                                      std::string_view reason,
                                      std::string_view extra) override {
    return change_nodes(nodes, request, reason, std::string(extra));
  }

  Result<Done> set_node_extra(std::span<const NodeName> nodes, std::string_view text) override {
    if (nodes.empty()) return Done{};
    std::string names = fold_hostlist({nodes.begin(), nodes.end()});
    std::string extra(text);
    update_node_msg_t message;
    slurm_init_update_node_msg(&message);
    message.node_names = names.data();
    message.extra = extra.data();
    errno = 0;
    return slurm::to_result(slurm_update_node(&message), fmt::format("setting extra of {}", names));
  }

  Result<Done> set_admin_comment(JobId job, std::string_view text) override {
    std::string comment(text);
    job_desc_msg_t message;
    slurm_init_job_desc_msg(&message);
    slurm::set_job_id(message, job);
    message.admin_comment = comment.data();
    errno = 0;
    return slurm::to_result(slurm_update_job(&message),
                            fmt::format("setting job {}'s AdminComment", job));
  }

  Result<Done> requeue(JobId job) override {
    errno = 0;
    return slurm::to_result(slurm::requeue(job, 0), fmt::format("requeueing job {}", job));
  }

  Result<Done> requeue_and_hold(JobId job) override {
    errno = 0;
    // Not slurm_requeue2: given the number of an array's first task it takes all of the array.
    return slurm::to_result(slurm::requeue(job, JOB_REQUEUE_HOLD),
                            fmt::format("requeueing and holding job {}", job));
  }

  Result<Done> cancel_job(JobId job) override { return slurm::cancel_job(job); }

  Result<Done> signal_job(JobId job, int signal) override { return slurm::signal_job(job, signal); }

  Result<Done> notify_job(JobId job, std::string_view text) override {
    const std::string doing = fmt::format("writing a line to job {}", job);
    // To slurmctld that would be every job there is.
    if (job == 0) return slurm::to_error(ESLURM_INVALID_JOB_ID, doing);
    std::string line(text);
    errno = 0;
    return slurm::to_result(slurm::notify_job(job, line.data()), doing);
  }

  Result<Done> create_reservation(const Reservation& reservation) override {
    return slurm::create_reservation(reservation);
  }

  Result<Done> update_reservation(const Reservation& reservation) override {
    return slurm::update_reservation(reservation);
  }

  Result<Done> delete_reservation(const std::string& name) override {
    return slurm::delete_reservation(name);
  }

 private:
  static Result<Done> change_nodes(std::span<const NodeName> nodes,
                                   NodeRequest request,
                                   std::string_view reason,
                                   std::optional<std::string> extra) {
    if (nodes.empty()) return Done{};
    // The message borrows these.
    std::string names = fold_hostlist({nodes.begin(), nodes.end()});
    std::string why(reason);
    update_node_msg_t message;
    slurm_init_update_node_msg(&message);
    message.node_names = names.data();
    message.node_state = to_state(request);
    if (!why.empty()) {
      message.reason = why.data();
      slurm::set_reason_uid(message, getuid());
    }
    if (extra) message.extra = extra->data();
    errno = 0;
    return slurm::to_result(slurm_update_node(&message),
                            fmt::format("setting {} to {}", names, to_string(request)));
  }

  static Result<slurm::ConfPtr> load_conf() {
    return load<slurm::ConfPtr>("loading Slurm's configuration",
                                [](auto** answer) { return slurm_load_ctl_conf(0, answer); });
  }

  static Result<std::vector<slurm::ControllerHost>> load_controllers() {
    // slurm_init has read them: a slurmctld that is away has no part in this.
    if (&slurm_conf != nullptr && slurm_conf.control_cnt > 0) return controllers_in(slurm_conf);
    auto conf = load_conf();
    if (!conf) return conf.error();
    return controllers_in(**conf);
  }

  template <class Wanted>
  static Result<std::vector<Job>> load_where(Wanted&& wanted) {
    auto answer = load<slurm::JobInfoPtr>(
        "loading jobs", [](auto** raw) { return slurm_load_jobs(0, raw, kShow); });
    if (!answer) return answer.error();
    std::vector<Job> jobs;
    append_jobs(jobs, **answer, wanted);
    return jobs;
  }

  static Result<std::vector<Job>> load_many(const std::unordered_set<JobId>& ids) {
    return load_where([&](JobId id) { return ids.contains(id); });
  }

  bool knows_infinite_ = slurm::kKnowsInfinite;
};

/// Empty if `path` is a file that can be read, else why not.
std::string why_unreadable(const std::string& path) {
  struct stat info {};

  if (stat(path.c_str(), &info) != 0 || access(path.c_str(), R_OK) != 0)
    return std::strerror(errno);
  return S_ISREG(info.st_mode) ? "" : "it is not a file";
}

}  // namespace

std::optional<uid_t> slurm_user_id() {
  if (&slurm_conf == nullptr || slurm_conf.slurm_user_name == nullptr) return std::nullopt;
  return slurm_conf.slurm_user_id;
}

std::string slurm_conf_state_dir() {
  if (&slurm_conf == nullptr || slurm_conf.state_save_location == nullptr) return {};
  return slurm_conf.state_save_location;
}

Result<std::unique_ptr<Scheduler>> open_libslurm(const std::string& conf_file) {
  const std::string path = conf_file.empty() ? find_slurm_conf() : conf_file;
  if (path.empty()) {
    return Error{ErrorKind::Invalid, "no slurm.conf found: set SLURM_CONF to its path"};
  }
  if (const auto why = why_unreadable(path); !why.empty()) {
    return Error{
        ErrorKind::Invalid,
        fmt::format("cannot read {}: {}; check SLURM_CONF and run as SlurmUser", path, why)};
  }
  std::unique_ptr<Scheduler> scheduler = std::make_unique<LibslurmScheduler>(path);
  if (&slurm_conf != nullptr) {
    slurm_conf.msg_timeout = std::min(slurm_conf.msg_timeout, kMaxPatience);
    slurm_conf.slurmctld_timeout = std::min(slurm_conf.slurmctld_timeout, kMaxPatience);
  }
  return scheduler;
}

}  // namespace flex
