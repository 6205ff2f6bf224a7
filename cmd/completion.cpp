// trainctl completion: prints the scripts with which shells complete the command line, and the manual page.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cmd/all_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/version.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

// The words of the command line, as shells complete them and the manual page lists them.
struct OptionWords {
  std::vector<std::string> names;    // "--out", "-o"; only the title of a positional argument: "CONFIG"
  std::string value;                 // the placeholder of its value: "N", "PATH"; empty: it has no value
  std::vector<std::string> choices;  // the values that it accepts; empty: any
  std::string meaning;

  bool is_argument() const { return names.front()[0] != '-'; }
};

struct CommandWords {
  std::string name, meaning, example;
  std::vector<OptionWords> options;  // in the order of --help
};

// Returns the words in the first braces of an option's type: test and validation for "TEXT:{test,validation}", bar and
// none for "ENUM:{bar->1,none->3} OR {1,3}".
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.find('}');
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::istringstream words(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word.substr(0, word.find("->")));
  return choices;
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  const std::string type = option.get_type_name();
  if (words.names.empty()) words.names.push_back(option.get_name());
  words.choices = choices_in(type);
  if (option.get_items_expected_max() > 0 && !words.is_argument()) {
    words.value = words.choices.empty() ? type.substr(0, type.find(':')) : "WORD";
  }
  words.meaning = option.get_description();
  return words;
}

// Returns the words of all subcommands, in the order of --help.
std::vector<CommandWords> words_of(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    CommandWords words{command->get_name(), command->get_description(), command->get_footer(), {}};
    for (const CLI::Option* option : all_options(*command)) words.options.push_back(words_of(*option));
    commands.push_back(std::move(words));
  }
  return commands;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Puts a backslash before each character of `text` that is in `special`.
std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

// Puts a text in single quotes, for a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// The bash commands that complete an argument or an option's value: with its choices, and with files if it has none or,
// for an argument, if no choice matches.
std::string bash_values(const OptionWords& option) {
  const std::string files = option.choices.empty() || option.is_argument() ? "compopt -o default 2>/dev/null; " : "";
  return files + (option.choices.empty()
                      ? "COMPREPLY=()"
                      : format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", joined(option.choices, " ")));
}

// The script for bash, to be sourced or to be installed as share/bash-completion/completions/trainctl.
std::string bash_script(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  std::string cases;
  for (const CommandWords& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> options;
    std::string values;
    for (const OptionWords& option : command.options) {
      if (option.is_argument()) continue;
      options.insert(options.end(), option.names.begin(), option.names.end());
      if (!option.value.empty()) {
        values += format("        {}) {}; return ;;\n", joined(option.names, "|"), bash_values(option));
      }
    }
    const auto argument = std::find_if(command.options.begin(), command.options.end(),
                                       [](const OptionWords& option) { return option.is_argument(); });
    const std::string others = argument == command.options.end() ? "COMPREPLY=()" : bash_values(*argument);
    cases += format(
        "    {})\n"
        "      case \"$previous\" in\n{}      esac\n"
        "      if [[ \"$current\" == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W '{}' -- \"$current\"))\n"
        "      else\n        {}\n      fi ;;\n",
        command.name, values, joined(options, " "), others);
  }
  return format(
      "# Completion of trainctl's command line for bash.\n"
      "_trainctl() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD - 1]}}\"\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "}}\n"
      "complete -F _trainctl trainctl\n",
      joined(names, " "), cases);
}

// The script for zsh, to be installed as _trainctl in a folder of $fpath.
std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string names, cases;
  for (const CommandWords& command : commands) {
    names += format("    {}\n", quoted(command.name + ":" + escaped(command.meaning, ":")));
    cases += format("    {})\n      _arguments", command.name);
    int position = 1;
    for (const OptionWords& option : command.options) {
      const std::string values = option.choices.empty() ? "_files" : "(" + joined(option.choices, " ") + ")";
      if (option.is_argument()) {
        cases +=
            format(" \\\n        {}", quoted(format("{}:{}:{}", position++, escaped(option.names[0], ":"), values)));
        continue;
      }
      for (const std::string& name : option.names) {
        std::string spec = name + "[" + escaped(option.meaning, "[]:") + "]";
        if (!option.value.empty()) spec += ":" + option.value + ":" + values;
        cases += " \\\n        " + quoted("*" + spec);
      }
    }
    cases += " ;;\n";
  }
  return format(
      "#compdef trainctl\n"
      "# Completion of trainctl's command line for zsh.\n"
      "_trainctl() {{\n"
      "  local -a commands\n"
      "  commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "_trainctl \"$@\"\n",
      names, cases);
}

// The script for fish, to be installed as trainctl.fish in fish's folder `completions`.
std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string text = "# Completion of trainctl's command line for fish.\n";
  for (const CommandWords& command : commands) {
    text +=
        format("complete -c trainctl -f -n __fish_use_subcommand -a {} -d {}\n", command.name, quoted(command.meaning));
    for (const OptionWords& option : command.options) {
      const std::string choices =
          option.choices.empty() ? "" : format(" -f -a {}", quoted(joined(option.choices, " ")));
      std::string words;
      for (const std::string& name : option.names) {
        if (option.is_argument()) continue;
        words += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.is_argument() && choices.empty()) continue;  // files, as fish completes by itself
      text += format("complete -c trainctl -n '__fish_seen_subcommand_from {}'{}{}{} -d {}\n", command.name, words,
                     option.value.empty() ? "" : " -r", choices, quoted(option.meaning));
    }
  }
  return text;
}

// The manual page trainctl.1.
std::string manual_page(const std::vector<CommandWords>& commands, const std::string& version) {
  const auto plain = [](const std::string& text) {
    const std::string safe = escaped(text, "\\-");
    return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
  };
  std::string text = format(
      ".TH TRAINCTL 1 \"\" \"trainctl {}\" \"User Commands\"\n"
      ".SH NAME\ntrainctl \\- trains networks described by one YAML file, on one GPU or CPU or on many\n"
      ".SH SYNOPSIS\n.B trainctl\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
      ".SH COMMANDS\n",
      version);
  for (const CommandWords& command : commands) {
    std::string arguments;
    for (const OptionWords& option : command.options) {
      if (option.is_argument()) arguments += " \\fI" + plain(option.names[0]) + "\\fR";
    }
    text += format(".SS trainctl {}{}\n{}.\n", plain(command.name), arguments, plain(command.meaning));
    for (const OptionWords& option : command.options) {
      std::string value = option.choices.empty() ? option.value : joined(option.choices, "|");
      if (option.is_argument()) value.clear();
      text += format(".TP\n\\fB{}\\fR{}\n{}.\n", plain(joined(option.names, ", ")),
                     value.empty() ? "" : " \\fI" + plain(value) + "\\fR", plain(option.meaning));
    }
    text += ".PP\n.nf\n";
    std::string example = command.example;
    for (std::size_t begin = 0; begin < example.size();) {
      const std::size_t end = std::min(example.find('\n', begin), example.size());
      text += plain(example.substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
    text += ".fi\n";
  }
  return text;
}

std::string script_for(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return manual_page(commands, std::string(version()));
}

}  // namespace

Subcommand completion_subcommand() {
  return {"completion", "Prints a shell's completion script, or the manual page",
          "trainctl completion fish > ~/.config/fish/completions/trainctl.fish\n"
          "  source <(trainctl completion bash)",
          [](CLI::App& app) -> std::function<int()> {
            auto shell = std::make_shared<std::string>();
            app.add_option("SHELL", *shell, "bash, zsh or fish; man: the manual page trainctl.1")
                ->required()
                ->check(one_of({"bash", "zsh", "fish", "man"}));
            return [shell, &app] {
              answer(script_for(*shell, words_of(*app.get_parent())));
              return 0;
            };
          }};
}

}  // namespace trainctl
