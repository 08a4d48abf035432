// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/completion_script.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace flex {

namespace {

void add_value(CompletedValue& value, const CLI::Option& option, const std::string& name) {
  static const std::vector<std::string> files = {"--config", "--log-file", "--output", "file"};
  if (std::find(files.begin(), files.end(), name) != files.end()) value.is_file = true;
  if (name == "--log-level") value.words = {"debug", "info", "warning", "error"};
  // "NODESET", "REQUEST", "bash|zsh": what add_option was given as the type's name.
  std::istringstream types{option.get_type_name()};
  for (std::string type; std::getline(types, type, '|');) {
    const bool is_word = !type.empty() && std::all_of(type.begin(), type.end(), [](char c) {
      return std::islower(static_cast<unsigned char>(c)) != 0 || c == '-';
    });
    value.is_nodeset = value.is_nodeset || type == "NODESET";
    value.is_request = value.is_request || type == "REQUEST";
    value.is_file = value.is_file || type == "FILE";
    if (is_word) value.words.push_back(type);
  }
}

CompletedOption to_option(const CLI::Option& option, const std::string& name) {
  CompletedOption made{.name = "--" + name, .what = option.get_description(), .value = {}};
  // What may have a value after '=' only takes no further word.
  made.takes_value = option.get_expected_min() > 0;
  if (made.takes_value) add_value(made.value, option, made.name);
  return made;
}

/// One quoted word for either shell.
std::string quoted(const std::string& text) {
  std::string made = "'";
  for (const char c : text) {
    if (c == '\'')
      made += "'\\''";
    else
      made += c;
  }
  return made + "'";
}

/// Calls `each(path, command, options)` for the command and those below it: with the options that
/// hold there, which are also those above it.
template <class Each>
void walk(const CompletedCommand& command,
          const std::string& path,
          std::vector<CompletedOption> options,
          const Each& each) {
  for (const CompletedOption& option : command.options) {
    const auto known = std::find_if(options.begin(), options.end(), [&](const auto& other) {
      return other.name == option.name;
    });
    if (known == options.end())
      options.push_back(option);
    else
      *known = option;
  }
  each(path, command, options);
  for (const CompletedCommand& child : command.commands)
    walk(child, path + " " + child.name, options, each);
}

/// The command that a line has come to, as words of a "case".
std::string path_cases(const CompletedCommand& root) {
  std::string text;
  walk(root, "", {}, [&](const std::string& path, const CompletedCommand&, const auto&) {
    if (!path.empty()) text += fmt::format("      '{}') path='{}' ;;\n", path, path);
  });
  return text;
}

std::string names_of(const std::vector<CompletedOption>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CompletedOption& option : options) names.push_back(option.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash_value(const CompletedValue& value) {
  std::string text;
  if (!value.words.empty()) text += fmt::format(" words+=' {}';", fmt::join(value.words, " "));
  if (value.is_nodeset) text += " words+=\" $(_flexctl_ask nodesets)\";";
  if (value.is_request) text += " words+=\" $(_flexctl_ask requests)\";";
  if (value.is_file) text += " is_file=1;";
  return text;
}

std::string zsh_value(const CompletedValue& value) {
  std::string text;
  if (!value.words.empty()) text += fmt::format(" values+=({});", fmt::join(value.words, " "));
  if (value.is_nodeset) text += " values+=($(_flexctl_ask nodesets));";
  if (value.is_request) text += " values+=($(_flexctl_ask requests));";
  if (value.is_file) text += " is_file=1;";
  return text;
}

/// zsh's "name:what it is".
std::string described(const std::string& name, const std::string& what) {
  return quoted(fmt::format("{}:{}", name, what));
}

template <class Value>
std::string value_cases(const std::vector<CompletedOption>& options, const Value& to_value) {
  std::string text;
  for (const CompletedOption& option : options) {
    if (option.takes_value)
      text += fmt::format("        {}) is_value=1;{} ;;\n", option.name, to_value(option.value));
  }
  return text;
}

}  // namespace

CompletedCommand to_tree(const CLI::App& app) {
  CompletedCommand command{
      .name = app.get_name(), .what = app.get_description(), .options = {}, .value = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      command.options.push_back(to_option(*option, name));
    if (option->get_positional()) add_value(command.value, *option, option->get_name(true));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    command.commands.push_back(to_tree(*child));
  return command;
}

std::string bash_script(const CompletedCommand& root) {
  std::string cases;
  walk(root, "", {}, [&](const std::string& path, const auto& command, const auto& options) {
    std::vector<std::string> children;
    children.reserve(command.commands.size());
    for (const CompletedCommand& child : command.commands) children.push_back(child.name);
    cases += fmt::format("    '{}')\n      case \"$prev\" in\n{}      esac\n",
                         path,
                         value_cases(options, bash_value));
    cases += fmt::format(
        "      if [[ -z $is_value ]]; then\n"
        "        if [[ $cur == -* ]]; then words='{}'; else words='{}';{} fi\n      fi ;;\n",
        names_of(options),
        fmt::join(children, " "),
        bash_value(command.value));
  });
  return fmt::format(R"(# bash completion for flexctl; made by: flexctl completion bash
_flexctl_ask() {{
  flexctl "${{config[@]}}" completion "$1" 2>/dev/null
}}
_flexctl() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local path='' word last='' words='' is_value='' is_file=''
  local -a config=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $last == --config ]] && config=(--config "$word")
    last=$word
    case "$path $word" in
{}    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=()
  # Not compgen -W, which would run what is in the words.
  local -a all=()
  read -r -d '' -a all <<< "$words"
  for word in "${{all[@]}}"; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
  done
  if [[ -n $is_file ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$cur")
  fi
}}
complete -F _flexctl flexctl
)",
                     path_cases(root),
                     cases);
}

std::string zsh_script(const CompletedCommand& root) {
  std::string cases;
  walk(root, "", {}, [&](const std::string& path, const auto& command, const auto& options) {
    cases += fmt::format(
        "    '{}')\n      case \"$words[CURRENT-1]\" in\n{}      esac\n      options=(\n",
        path,
        value_cases(options, zsh_value));
    for (const CompletedOption& option : options)
      cases += fmt::format("        {}\n", described(option.name, option.what));
    cases += "      )\n      commands=(\n";
    for (const CompletedCommand& child : command.commands)
      cases += fmt::format("        {}\n", described(child.name, child.what));
    const std::string value = zsh_value(command.value);
    cases += "      )\n";
    if (!value.empty()) cases += fmt::format("      if [[ -z $is_value ]]; then{} fi\n", value);
    cases += "      ;;\n";
  });
  return fmt::format(R"(#compdef flexctl
# Made by: flexctl completion zsh
_flexctl_ask() {{
  flexctl $config completion $1 2>/dev/null
}}
_flexctl() {{
  local path_ word last is_value is_file
  local -a options commands values config
  for word in $words[2,CURRENT-1]; do
    [[ $last == --config ]] && config=(--config $word)
    last=$word
    case "$path_ $word" in
{}    esac
  done
  case "$path_" in
{}  esac
  [[ -n $is_file ]] && _files
  (( $#values )) && compadd -a values
  [[ -n $is_value ]] && return
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o option options
  elif (( $#commands )); then
    _describe command commands
  fi
}}
_flexctl "$@"
)",
                     [&] {
                       std::string text = path_cases(root);
                       // "path" is zsh's own name for $PATH.
                       for (std::size_t at = text.find(" path="); at != std::string::npos;
                            at = text.find(" path=", at + 1))
                         text.replace(at, 6, " path_=");
                       return text;
                     }(),
                     cases);
}

}  // namespace flex
