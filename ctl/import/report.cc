// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/import/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace flex {

namespace {

using Json = nlohmann::ordered_json;

std::size_t count(const Report& report, Fate fate) {
  return static_cast<std::size_t>(
      std::count_if(report.entries.begin(), report.entries.end(), [fate](const ReportEntry& entry) {
        return entry.fate == fate;
      }));
}

std::string line_of(const Report& report, const ReportEntry& entry) {
  std::string line = report.file;
  if (entry.mark.line > 0) line += fmt::format(":{}:{}", entry.mark.line, entry.mark.column);
  line += fmt::format(": {}:", to_string(entry.fate));
  if (!entry.from.empty()) line += " " + entry.from;
  if (!entry.to.empty()) line += fmt::format("{}{}", entry.from.empty() ? " " : " → ", entry.to);
  if (!entry.note.empty()) line += fmt::format(" ({})", entry.note);
  return line + "\n";
}

}  // namespace

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::Mapped:
      return "mapped";
    case Fate::Assumed:
      return "assumed";
    case Fate::NoEqual:
      return "no equivalent";
    case Fate::LeftOut:
      return "left out";
  }
  return "unknown";
}

void Report::sort() {
  const auto key = [](const ReportEntry& entry) {
    return std::pair(entry.mark.line == 0, entry.mark);
  };
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
    return key(a) < key(b);
  });
}

std::string Report::text() const {
  std::string text;
  for (const ReportEntry& entry : entries) text += line_of(*this, entry);
  return text + fmt::format("{}: {} mapped, {} assumed, {} without equivalent, {} left out\n",
                            file,
                            count(*this, Fate::Mapped),
                            count(*this, Fate::Assumed),
                            count(*this, Fate::NoEqual),
                            count(*this, Fate::LeftOut));
}

std::string to_json(const Report& report, const std::vector<Problem>& problems) {
  const auto place = [](int line, int column) {
    return line > 0 ? Json{{"line", line}, {"column", column}} : Json(nullptr);
  };
  Json entries = Json::array();
  for (const ReportEntry& entry : report.entries) {
    entries.push_back({{"fate", to_string(entry.fate)},
                       {"place", place(entry.mark.line, entry.mark.column)},
                       {"from", entry.from},
                       {"to", entry.to},
                       {"note", entry.note}});
  }
  Json wrong = Json::array();
  for (const Problem& problem : problems) {
    wrong.push_back({{"place", place(problem.line, problem.column)},
                     {"what", problem.what},
                     {"hint", problem.hint}});
  }
  const Json all{{"file", report.file}, {"report", entries}, {"problems", wrong}};
  // The file was checked to be UTF-8; `replace` keeps a text that was cut from ending the program.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace flex
