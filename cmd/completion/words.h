// The words of the command line, as shells complete them and the manual page lists them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace trainctl {

struct OptionWords {
  std::vector<std::string> names;    // "--out", "-o"; of an argument without a name its title alone: "CONFIG"
  std::string value;                 // what its value is called: "N", "PATH"; empty: it takes none
  std::vector<std::string> choices;  // the values that it takes; empty: any
  std::string meaning;

  bool is_argument() const { return names.front()[0] != '-'; }
};

struct CommandWords {
  std::string name, meaning, example;
  std::vector<OptionWords> options;  // in the order of --help
};

// Of all subcommands, in the order of --help.
std::vector<CommandWords> words_of(const CLI::App& app);

}  // namespace trainctl
