// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/request.h"

#include "lib/slurm/hostlist.h"
#include "test/support/catch.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace flex;

namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(FLEX_TEST_DATA) / "resume";

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ResumeRequest good(const std::string& name) {
  auto request = parse_resume_file(content(kData / "good" / (name + ".json")));
  INFO(name << (request ? "" : ": " + request.error().what));
  REQUIRE(request);
  return *std::move(request);
}

/// "3: flex-0 < flex-0; 4: …; all flex-[0-2]"
std::string summary(const ResumeRequest& request) {
  std::string text;
  for (const auto& job : request.jobs) {
    text += fmt::format(
        "{}: {} of {}; ", job.id, fold_hostlist(job.nodes_resume), fold_hostlist(job.nodes_alloc));
  }
  return text + "all " + fold_hostlist(request.all_nodes);
}

}  // namespace

TEST_CASE("parse_resume_file: reads the shape of every release", "[resume]") {
  const auto [name, expected] = GENERATE(table<std::string, std::string>({
      {"22.05", "3: flex-0 of flex-0; 4: flex-[1-2] of flex-[1-2]; all flex-[0-2]"},
      {"22.05_array",
       "11: flex-0 of flex-0; 12: flex-1 of flex-1; 10: flex-2 of flex-2; all flex-[0-2]"},
      {"22.05_het", "20: flex-0 of flex-0; 21: gpu-[0-3] of gpu-[0-3]; all flex-0,gpu-[0-3]"},
      {"22.05_no_jobs", "all flex-9"},
      {"24.11", "1: flex-0 of flex-0; all flex-0"},
      {"24.11_subset", "1: flex-[2-3] of flex-[0-3]; 2: flex-[3-4] of flex-[3-4]; all flex-[2-4]"},
      {"24.11_het", "20: flex-0 of flex-0; 21: gpu-[0-3] of gpu-[0-3]; all flex-0,gpu-[0-3]"},
      {"24.11_no_jobs", "all flex-9"},
      {"24.11_null_nodes", "1:  of flex-0; all "},
      {"26.05", "1: flex-0 of flex-0; all flex-0"},
      {"later", "4294967295: flex-1 of flex-[0-1]; all flex-1"},
  }));
  CHECK(summary(good(name)) == expected);
}

TEST_CASE("parse_resume_file: no good file is left out of the test", "[resume]") {
  const auto files = fs::directory_iterator(kData / "good");
  CHECK(std::distance(begin(files), end(files)) == 11);
}

TEST_CASE("parse_resume_file: keeps the texts of a job, null is empty", "[resume]") {
  const auto job = good("24.11").jobs.at(0);
  CHECK(job.partition == "flex");
  CHECK(job.extra == "x");
  CHECK(job.features.empty());
  CHECK(job.reservation.empty());
  const auto other = good("24.11_subset").jobs.at(0);
  CHECK(other.features == "a&b");
  CHECK(other.reservation == "r1");
  CHECK(good("22.05").jobs.at(0).partition.empty());
}

TEST_CASE("parse_resume_file: refuses each bad file with a message that names the place",
          "[resume]") {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kData / "bad")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    auto expected = content(fs::path(entry.path()).replace_extension(".expect"));
    while (!expected.empty() && expected.back() == '\n') expected.pop_back();
    INFO(entry.path().filename());
    REQUIRE_FALSE(expected.empty());
    const auto request = parse_resume_file(content(entry.path()));
    REQUIRE_FALSE(request);
    CHECK(request.error().kind == ErrorKind::Invalid);
    const auto& what = request.error().what;
    CHECK_THAT(what, StartsWith("resume file: "));
    CHECK_THAT(what, ContainsSubstring(expected));
    CHECK(what.size() < 400);
    // One line of plain text whatever the file holds; the only other character is our "…".
    CHECK(std::none_of(what.begin(), what.end(), [](char c) { return c >= 0 && c < 0x20; }));
  }
  CHECK(files >= 20);
}

TEST_CASE("parse_resume_file: every beginning of a good file is refused", "[resume]") {
  const auto name = GENERATE(as<std::string>{}, "22.05", "24.11_subset", "26.05", "later");
  auto text = content(kData / "good" / (name + ".json"));
  text.pop_back();  // the newline is no part of the value
  for (std::size_t size = 0; size < text.size(); ++size) {
    INFO(text.substr(0, size));
    CHECK_FALSE(parse_resume_file(std::string_view(text).substr(0, size)));
  }
  CHECK(parse_resume_file(text));
}

TEST_CASE("parse_resume_file: takes many jobs and large ones, and stops at its limits",
          "[resume]") {
  std::string jobs;
  for (int i = 1; i <= 2000; ++i) {
    jobs += fmt::format(R"({}{{"job_id":{},"nodes":"n-{}"}})", i == 1 ? "" : ",", i, i);
  }
  const auto text = fmt::format(R"({{"jobs":[{}],"all_nodes":"n-[1-2000]"}})", jobs);
  const auto request = parse_resume_file(text);
  REQUIRE(request);
  CHECK(request->jobs.size() == 2000);
  CHECK(request->all_nodes.size() == 2000);

  const auto spaces = std::string(kMaxResumeFile - text.size(), ' ');
  CHECK(parse_resume_file(text + spaces));
  CHECK_THAT(parse_resume_file(text + spaces + " ").error().what, ContainsSubstring("16777216"));

  std::string crowd;
  for (int i = 1; i <= 20; ++i) {
    crowd += fmt::format(R"({}{{"job_id":{},"nodes":"n[0-65535]"}})", i == 1 ? "" : ",", i);
  }
  const auto refused = parse_resume_file(fmt::format(R"({{"jobs":[{}],"all_nodes":"n0"}})", crowd));
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().what, ContainsSubstring("jobs[16].nodes: more than 1048576 names"));
}

TEST_CASE("read_resume_file: reads a memory file as slurmctld gives it, again and again",
          "[resume]") {
  const int fd = memfd_create("resume", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  const std::string text(200000, 'x');
  REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  const auto path = fmt::format("/proc/{}/fd/{}", getpid(), fd);
  for (int i = 0; i < 2; ++i) {
    const auto got = read_resume_file(path);
    REQUIRE(got);
    CHECK(*got == text);
  }
  close(fd);
  const auto gone = read_resume_file(path);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().kind == ErrorKind::NotFound);
  CHECK_THAT(gone.error().what, ContainsSubstring(path));
}

TEST_CASE("read_resume_file: refuses a directory and a file without end", "[resume]") {
  CHECK_FALSE(read_resume_file(kData.string()));
  const auto endless = read_resume_file("/dev/zero");
  REQUIRE_FALSE(endless);
  CHECK(endless.error().kind == ErrorKind::Invalid);
}
