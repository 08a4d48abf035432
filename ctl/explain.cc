// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl explain: the story of a job, a node or a request.
#include "ctl/command.h"
#include "ctl/explain/gather.h"
#include "ctl/explain/story.h"
#include "ctl/terminal.h"
#include "lib/core/duration.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <limits>
#include <memory>

namespace flex {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLines = 60;

struct ExplainCommand {
  std::string subject{};
  bool is_all = false;
  bool is_json = false;
};

Colour colour_of(const StoryLine& line) {
  const std::string& what = line.event.what;
  const auto result = line.event.more.find("result");
  const auto ended = line.event.more.find("ended");
  const bool is_failed = result != line.event.more.end() && result->second == "failed";
  const bool is_lost = ended != line.event.more.end() && ended->second == "lost";
  if (what == "failed" || what == "not_requested" || is_failed || is_lost) return Colour::Red;
  if (what == "attempt" || what == "vm_gone" || what == "given_back") return Colour::Yellow;
  if (what == "vm_up" || what == "registered" || what == "job_started") return Colour::Green;
  return Colour::Plain;
}

void print_text(const Story& story, TimePoint now) {
  const Terminal out = standard_output();
  std::cout << out.paint(Colour::Bold, story.title) << '\n';
  for (const std::string& note : story.notes)
    std::cout << out.paint(Colour::Yellow, printable(note)) << '\n';
  if (story.left_out > 0)
    std::cout << out.paint(
                     Colour::Dim,
                     fmt::format("  ({} earlier ones: --all tells them, too)", story.left_out))
              << '\n';
  std::size_t wide = 0;
  std::size_t who = 0;
  for (const StoryLine& line : story.lines) {
    wide = std::max(wide, clock_text(line.when, now).size());
    who = std::max(who, line.who.size());
  }
  for (const StoryLine& line : story.lines) {
    std::cout << fmt::format("  {:>{}}  {}  {}\n",
                             clock_text(line.when, now),
                             wide,
                             out.paint(Colour::Dim, fmt::format("{:<{}}", line.who, who)),
                             out.paint(colour_of(line), line.text));
  }
  std::cout << out.paint(Colour::Bold, "Now: ") << story.now << '\n' << std::flush;
}

Json to_json(const StoryLine& line) {
  const Event& event = line.event;
  Json json{{"time", format_time(line.when)},
            {"who", line.who},
            {"what", event.what.empty() ? "seen" : event.what},
            {"text", line.text}};
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  if (event.job != 0) json["job"] = event.job;
  put("nodeset", event.nodeset);
  put("group", event.group);
  put("request", event.request);
  put("nodes", event.nodes);
  if (event.n != 0) json["n"] = event.n;
  put("rule", event.rule);
  put("why", event.why);
  for (const auto& [key, value] : event.more) json["more"][key] = value;
  return json;
}

std::string_view kind_text(Subject::Kind kind) {
  switch (kind) {
    case Subject::Kind::Job:
      return "job";
    case Subject::Kind::Node:
      return "node";
    case Subject::Kind::Request:
      return "request";
  }
  return "job";
}

void print_json(const Story& story) {
  Json json{{"kind", kind_text(story.subject.kind)},
            {"name", story.subject.text()},
            {"title", story.title},
            {"notes", story.notes},
            {"left_out", story.left_out},
            {"events", Json::array()},
            {"now", story.now}};
  if (story.subject.kind == Subject::Kind::Job) json["job"] = story.subject.job;
  for (const StoryLine& line : story.lines) json["events"].push_back(to_json(line));
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
}

int run_explain(const ExplainCommand& command, const Options& options) {
  auto setup = open_setup(options);
  if (!setup) return kExitUsage;
  const Gathered found = gather(*setup);
  const Facts facts = found.facts(setup->config);
  const auto fail = [&](const std::string& what) {
    for (const std::string& note : found.notes) complain(note, kExitFailed);
    return complain(what, kExitFailed);
  };
  const auto subject = find_subject(command.subject, found.events, facts);
  if (!subject) return fail(subject.error().what);
  const std::size_t most = command.is_all ? std::numeric_limits<std::size_t>::max() : kMostLines;
  const Story story = tell_story(*subject, found.events, facts, most);
  if (!story.is_known)
    return fail(
        fmt::format("neither Slurm nor the history knows {} {}: squeue and flexctl status "
                    "list those that there are",
                    kind_text(subject->kind),
                    subject->text()));
  if (command.is_json)
    print_json(story);
  else
    print_text(story, found.shot.now);
  return std::cout ? kExitOk : complain("standard output: cannot be written", kExitFailed);
}

}  // namespace

void add_explain(CLI::App& app, Command& command) {
  CLI::App* const explain =
      app.add_subcommand("explain", "the story of a job, a node or a request, and what comes next");
  explain->fallthrough();
  const auto own = std::make_shared<ExplainCommand>();
  explain
      ->add_option(
          "subject", own->subject, "job (12, 12_3, 12+1), node, or a request: NAME or GROUP/NAME")
      ->required();
  explain->add_flag("--all", own->is_all, "from the beginning, however long ago");
  explain->add_flag("--json", own->is_json, "as JSON");
  explain->callback([&command, own] {
    command.run = [own](const Options& options, const Log&) { return run_explain(*own, options); };
  });
}

}  // namespace flex
