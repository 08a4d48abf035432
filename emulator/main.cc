// SPDX-License-Identifier: GPL-2.0-or-later
// flex-gce-emulator: a local Compute Engine for tests, the demo and the benchmark.
#include "emulator/front.h"
#include "emulator/server.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <pthread.h>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace {

using flex::emulator::Front;
using flex::emulator::Json;

struct Arguments {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string config{};
  std::string state{};
  std::string port_file{};
};

/// YAML holds JSON; scalars become what they look like.
Json from_yaml(const YAML::Node& node) {
  if (node.IsMap()) {
    Json map = Json::object();
    for (const auto& entry : node) map[entry.first.as<std::string>()] = from_yaml(entry.second);
    return map;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& item : node) list.push_back(from_yaml(item));
    return list;
  }
  if (!node.IsScalar()) return nullptr;
  const auto text = node.as<std::string>();
  const bool is_quoted = node.Tag() == "!";
  const Json value = is_quoted ? Json(text) : Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

bool configure(Front& front, const std::string& path) {
  try {
    if (const auto bad = front.configure(from_yaml(YAML::LoadFile(path)))) {
      fmt::print(stderr, "flex-gce-emulator: {}: {}\n", path, *bad);
      return false;
    }
  } catch (const YAML::Exception& error) {
    fmt::print(stderr, "flex-gce-emulator: {}: {}\n", path, error.what());
    return false;
  }
  return true;
}

void write_port(const std::string& path, int port) {
  if (path.empty()) return;
  const std::string temporary = path + ".new";
  std::ofstream(temporary) << port << '\n';
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fmt::print(stderr, "flex-gce-emulator: cannot write {}\n", path);
}

int serve(const Arguments& arguments) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // in all threads: one waits for them
  signal(SIGPIPE, SIG_IGN);

  Front front({}, arguments.state);
  if (!arguments.config.empty() && !configure(front, arguments.config)) return 2;
  if (const auto bad = front.load_state()) {
    fmt::print(stderr, "flex-gce-emulator: {}\n", *bad);
    return 2;
  }
  flex::emulator::Server server(front);
  const int port = server.bind(arguments.host, arguments.port);
  if (port < 0) {
    fmt::print(
        stderr, "flex-gce-emulator: cannot listen on {}:{}\n", arguments.host, arguments.port);
    return 1;
  }
  // The socket already takes connections; they wait for the first accept.
  write_port(arguments.port_file, port);
  fmt::print("listening on http://{}:{}\n", arguments.host, port);
  std::fflush(stdout);

  std::thread thread([&server] { server.run(); });
  int number = 0;
  sigwait(&signals, &number);
  server.stop();
  front.finish();
  // Connections that are kept alive would be waited for: nothing is left to do for them.
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"A local Compute Engine: groups, resize requests, VMs, faults."};
  app.add_option("--port", arguments.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535));
  app.add_option("--host", arguments.host, "address to listen on");
  app.add_option("--config", arguments.config, "settings, YAML or JSON")->check(CLI::ExistingFile);
  app.add_option("--state", arguments.state, "file in which the state survives a restart");
  app.add_option("--port-file", arguments.port_file, "file to write the port to");
  app.set_version_flag("--version", "flex-gce-emulator " FLEX_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return serve(arguments);
}
