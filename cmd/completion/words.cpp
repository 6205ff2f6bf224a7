// Reading the words from the parser.
#include "cmd/completion/words.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace trainctl {
namespace {

// "TEXT:{test,validation}" as test and validation, and likewise "ENUM:{bar->1,none->3} OR {1,3}".
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

}  // namespace

std::vector<CommandWords> words_of(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    CommandWords words{command->get_name(), command->get_description(), command->get_footer(), {}};
    for (const CLI::Option* option : command->get_options()) words.options.push_back(words_of(*option));
    commands.push_back(std::move(words));
  }
  return commands;
}

}  // namespace trainctl
