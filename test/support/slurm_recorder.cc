// SPDX-License-Identifier: GPL-2.0-or-later
// Watches slurmctld for the invariants of the cluster tests: looks twice a second and writes a line
// of JSON for each job and node that is not as it was. Ends when it is killed.
//   slurm-recorder PORT    (of slurmctld: libslurm waits ten seconds for one that is not there)
#include "lib/slurm/libslurm_scheduler.h"
#include "lib/slurm/node_state.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace flex;
using Json = nlohmann::json;

namespace {

constexpr auto kPause = std::chrono::milliseconds{500};

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Without a connection: slurmctld would write an error in its log for each that says nothing.
bool is_listening(std::uint16_t port) {
  constexpr std::string_view kListens = "0A";
  std::ifstream table("/proc/net/tcp");
  const std::string wanted = fmt::format(":{:04X}", port);
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    words >> number >> local >> remote >> state;
    if (local.ends_with(wanted) && state == kListens) return true;
  }
  return false;
}

Json to_json(const Node& node) {
  return Json{{"node", node.name.text}, {"state", state_text(node)}, {"reason", node.reason}};
}

Json to_json(const Job& job) {
  Json names = Json::array();
  for (const NodeName& name : job.nodes) names.push_back(name.text);
  Json json{{"job", job.id},
            {"state", job.state},
            {"pending", job.is_pending},
            {"configuring", job.is_configuring},
            {"running", job.is_running},
            {"finished", job.is_finished},
            {"restarts", job.restart_count},
            {"nodes", std::move(names)},
            {"partition", job.partition},
            {"admin_comment", job.admin_comment},
            {"start", job.start_time.time_since_epoch().count()},
            {"end", job.end_time.time_since_epoch().count()}};
  json["limit"] = job.time_limit ? Json(job.time_limit->count()) : Json();
  return json;
}

/// Writes what differs from the last time it was written.
class Book {
 public:
  void tell(double at, const std::string& key, Json now) {
    std::string text = now.dump();
    if (last_[key] == text) return;
    last_[key] = std::move(text);
    now["at"] = at;
    std::puts(now.dump().c_str());
  }

 private:
  std::map<std::string, std::string> last_{};
};

void look(Scheduler& scheduler, Listed<Job>& jobs, Book& book) {
  // What is told was so when slurmctld answered: not before `began`.
  const double began = wall_time();
  const auto is_new = scheduler.refresh_jobs(jobs);
  const auto nodes = scheduler.load_nodes();
  if (!is_new || !nodes) return;
  for (const Job& job : jobs.items) book.tell(began, std::to_string(job.id), to_json(job));
  for (const Node& node : *nodes) book.tell(began, node.name.text, to_json(node));
  book.tell(began, "", Json{{"look", began}});
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto port = static_cast<std::uint16_t>(std::strtoul(argv[1], nullptr, 10));
  while (!is_listening(port)) std::this_thread::sleep_for(kPause);
  const auto scheduler = open_libslurm();
  if (!scheduler) {
    std::fputs(scheduler.error().what.c_str(), stderr);
    return 1;
  }
  Listed<Job> jobs;
  Book book;
  while (true) {
    if (is_listening(port)) look(**scheduler, jobs, book);
    std::this_thread::sleep_for(kPause);
  }
}
