// SPDX-License-Identifier: GPL-2.0-or-later
// flex-timeleft: how long a job's VMs still live, for job scripts. It reads one variable of its
// environment and nothing else, so that it works on a node without network and without rights.
#include "lib/core/clock.h"
#include "lib/core/program.h"
#include "timeleft/timeleft.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <optional>
#include <string>

namespace {

constexpr int kExitUnknown = 3;

struct Question {
  std::string least = "0";
  bool is_human = false;
};

/// An int is the exit code with which to end at once.
std::optional<int> parse_arguments(int argc, const char* const* argv, Question& question) {
  CLI::App app{"Prints the seconds until the VMs of this job end", "flex-timeleft"};
  app.set_version_flag("--version", "flex-timeleft " FLEX_VERSION);
  app.add_option("--min", question.least, "exit with 1 if less is left: 10 or 10m, 4h, D-HH:MM:SS")
      ->type_name("TIME");
  app.add_flag("--human", question.is_human, "print 2:13:05 instead of seconds");
  app.footer("Exit status: 0 enough is left, 1 less than --min, 2 bad usage, 3 not known.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    return code == 0 ? flex::kExitOk : flex::kExitUsage;
  }
  return std::nullopt;
}

int complain(const flex::Error& error, int code) {
  std::cerr << "flex-timeleft: " << error.what << '\n';
  return code;
}

int answer(const Question& question) {
  const auto least = flex::parse_min(question.least);
  if (!least) return complain(least.error(), flex::kExitUsage);
  const auto end = flex::parse_end(flex::environment("SLURM_FLEX_END_TIME"));
  if (!end) return complain(end.error(), kExitUnknown);
  const flex::Seconds left = flex::time_left(*end, flex::SystemClock{}.now());
  // Where nobody listens the exit code is the answer all the same.
  std::cout << (question.is_human ? flex::format_left(left) : std::to_string(left.count())) << '\n';
  return flex::is_enough(left, *least) ? flex::kExitOk : flex::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Question question;
    if (const auto code = parse_arguments(argc, argv, question)) return *code;
    return answer(question);
  } catch (const std::exception& error) {
    std::cerr << "flex-timeleft: " << error.what() << '\n';
    return kExitUnknown;
  }
}
