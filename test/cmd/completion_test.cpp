// Tests the completion scripts in their shells, and the manual page.
#include <cstdlib>
#include <fstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::completion_test {
namespace {

// The output of a command that a shell runs in the folder.
std::string output_of(const Folder& folder, const std::string& command) {
  const std::string line = format("cd '{}' && ({}) > output 2>&1", folder.path().string(), command);
  INFO(line);
  CHECK(std::system(line.c_str()) == 0);
  return read_file(folder / "output");
}

bool has_program(const std::string& name) {
  if (std::system(format("command -v {} > /dev/null", name).c_str()) == 0) return true;
  WARN(name + " is not installed");
  return false;
}

void save(const Folder& folder, const std::string& shell, const std::string& file) {
  const Finished script = trainctl(folder, {"completion", shell});
  REQUIRE(script.code == 0);
  std::ofstream(folder / file) << script.out;
}

}  // namespace

TEST_CASE("bash completes commands, options and their values") {
  const Folder folder;
  save(folder, "bash", "completion.bash");
  const auto completed = [&](const std::string& words, int at) {
    return output_of(folder, format("bash -c 'source completion.bash; COMP_WORDS=({}); COMP_CWORD={}; _trainctl; "
                                    "echo \"${{COMPREPLY[@]}}\"'",
                                    words, at));
  };
  CHECK(completed("trainctl ve", 1) == "verify-scaling\n");
  CHECK(contains(completed("trainctl \"\"", 1), "run check plan eval"));
  CHECK(completed("trainctl run --prog", 2) == "--progress\n");
  CHECK(completed("trainctl predict --top-", 2) == "--top-k --top-p\n");  // of an option group
  CHECK(completed("trainctl eval c.yaml --data v", 4) == "validation\n");
  CHECK(completed("trainctl bench st", 2) == "step\n");
  CHECK(completed("trainctl run c.yaml --progress b", 4) == "bar\n");
  CHECK(completed("trainctl run c", 2) == "\n");  // bash then completes file names
}

TEST_CASE("fish completes commands and options, and zsh accepts its script") {
  const Folder folder;
  if (has_program("fish")) {
    save(folder, "fish", "completion.fish");
    const auto completed = [&](const std::string& line) {
      return output_of(folder, format("HOME=$PWD fish -c 'source completion.fish; complete -C \"{}\"'", line));
    };
    CHECK(contains(completed("trainctl ve"), "verify-scaling"));
    CHECK(contains(completed("trainctl run --prog"), "--progress"));
    CHECK(contains(completed("trainctl eval c.yaml --data v"), "validation"));
  }
  if (has_program("zsh")) {
    save(folder, "zsh", "_trainctl");
    CHECK(output_of(folder, "zsh -n _trainctl").empty());
    CHECK(output_of(folder,
                    "zsh -fc 'fpath=($PWD $fpath); autoload -Uz compinit && compinit -u -d dump && "
                    "echo ${_comps[trainctl]}'") == "_trainctl\n");
  }
}

TEST_CASE("the manual page has every command, and groff formats it without a warning") {
  const Folder folder;
  save(folder, "man", "trainctl.1");
  const std::string page = read_file(folder / "trainctl.1");
  for (const char* words :
       {".SS trainctl verify\\-scaling", ".SS trainctl run \\fICONFIG\\fR", "\\fB\\-\\-ranks\\fR \\fIN\\fR"}) {
    CHECK(contains(page, words));
  }
  if (has_program("groff")) CHECK(output_of(folder, "groff -man -ww -z trainctl.1").empty());
}

}  // namespace trainctl::test::completion_test
