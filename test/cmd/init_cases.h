// Cases of data for init: what it writes or refuses, and that its configs pass check and train for an epoch.
#pragma once

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::init_cases {

// Data that init looks at, and what it must say: words of the config if it accepts the data, else of the error.
struct Case {
  std::string path;
  std::function<void(const Folder& folder)> write;
  bool accepted = true;
  std::vector<std::string> words;
  std::vector<std::string> options = {};
};

// Returns a text of seven words, of which the first one tells whether i is even.
inline std::string sentence(int i) {
  std::mt19937 random(static_cast<unsigned>(i));
  std::string text = i % 2 == 0 ? "great" : "awful";
  for (int k = 0; k < 6; ++k) text += format(" word{}", random() % 50);
  return text;
}

// Writes a table: its first line, and 60 lines that the function gives.
inline std::function<void(const Folder&)> table(const std::string& path, const std::string& head,
                                                const std::function<std::string(int i)>& line) {
  return [=](const Folder& folder) {
    std::string text = head.empty() ? "" : head + "\n";
    for (int i = 0; i < 60; ++i) text += line(i) + "\n";
    folder.write(path, text);
  };
}

// Checks what init says about the data, and that its config passes check and trains for an epoch.
inline void check_case(const Case& one) {
  CAPTURE(one.path);
  const Folder folder;
  one.write(folder);
  std::vector<std::string> arguments{"init", one.path};
  arguments.insert(arguments.end(), one.options.begin(), one.options.end());
  const Finished made = trainctl(folder, arguments);
  INFO(made.out << tail(made.errors));
  if (!one.accepted) {
    CHECK(made.code == 3);
    for (const std::string& word : one.words) {
      CAPTURE(word);
      CHECK(contains(made.errors, word));
    }
    return;
  }
  REQUIRE(made.code == 0);
  std::vector<std::string> configs;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".yaml") configs.push_back(entry.path().filename().string());
  }
  const std::string first = std::filesystem::path(one.path).stem().string() + ".yaml", text = read_file(folder / first);
  CAPTURE(text);
  for (const std::string& word : one.words) {
    CAPTURE(word);
    CHECK((contains(text, word) || contains(made.out, word)));
  }
  for (const std::string& config : configs) {
    CAPTURE(config);
    const Finished checked = trainctl(folder, {"check", config, "--ranks", "1", "--quiet"});
    INFO(tail(checked.errors));
    CHECK(checked.code == 0);
    if (contains(config, "-large")) continue;  // its network takes long
    const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--quiet", "--set", "train.epochs=1"});
    INFO(tail(run.errors));
    CHECK(run.code == 0);
  }
}

inline void check_cases(const std::vector<Case>& cases) {
  for (const Case& one : cases) check_case(one);
}

}  // namespace trainctl::test::init_cases
