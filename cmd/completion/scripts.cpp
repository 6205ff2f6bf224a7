// Writing completion scripts and the manual page.
#include "cmd/completion/scripts.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// With each of the characters behind a backslash.
std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

// In single quotes, for a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// What completes an argument or an option's value for bash: its choices, and files where they do not match or it has
// none.
std::string bash_values(const OptionWords& option) {
  const std::string files = option.choices.empty() || option.is_argument() ? "compopt -o default 2>/dev/null; " : "";
  return files + (option.choices.empty()
                      ? "COMPREPLY=()"
                      : format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", joined(option.choices, " ")));
}

}  // namespace

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

std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string names, cases;
  for (const CommandWords& command : commands) {
    names += format("    {}\n", quoted(command.name + ":" + escaped(command.meaning, ":")));
    cases += format("    {})\n      _arguments", command.name);
    int place = 1;
    for (const OptionWords& option : command.options) {
      const std::string values = option.choices.empty() ? "_files" : "(" + joined(option.choices, " ") + ")";
      if (option.is_argument()) {
        cases += format(" \\\n        {}", quoted(format("{}:{}:{}", place++, escaped(option.names[0], ":"), values)));
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

}  // namespace trainctl
