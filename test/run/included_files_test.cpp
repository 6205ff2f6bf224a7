// Tests that a file which a config includes and that cannot be read is reported without errors that follow from it.
#include <algorithm>
#include <filesystem>

#include "run/run_spec.h"
#include "test/catch.h"
#include "test/run/config_support.h"
#include "test/support/files.h"

namespace trainctl::testing::included_files_test {
namespace {

// The errors of the good config with a change, without the folder's name.
std::vector<std::string> errors_with(const std::string& from, const std::string& to) {
  const test::TempFolder folder;
  const std::string file = folder / "c.yaml";
  test::write_file(file, replaced(good_config, from, to));
  test::write_file(folder / "list.yaml", "- 1\n");
  std::vector<std::string> lines;
  try {
    load_run_spec(file, {});
  } catch (const Error& error) {
    const std::string text = error.what();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string line = text.substr(begin, end - begin);
      const std::size_t name = line.find("c.yaml");
      lines.push_back(name == std::string::npos ? line : line.substr(name));
      begin = end + 1;
    }
  }
  return lines;
}

bool is_missing(const std::string& line, const std::string& place) {
  return line.starts_with(place + ": included file '") &&
         line.ends_with("gone.yaml' cannot be read: No such file or directory");
}

}  // namespace

TEST_CASE("a missing included file is the only error if the others follow from it") {
  CAPTURE(errors_with("train:\n  batch_size: 32\n", "include: gone.yaml\ntrain:\n"));
  const auto whole = errors_with("train:\n  batch_size: 32\n", "include: gone.yaml\ntrain:\n");
  REQUIRE(whole.size() == 1);
  CHECK(is_missing(whole[0], "c.yaml:11:10"));
  const auto section = errors_with("  batch_size: 32\n", "  include: gone.yaml\n");
  REQUIRE(section.size() == 1);
  CHECK(is_missing(section[0], "c.yaml:12:12"));
  const auto data = errors_with("  dataset: synthetic\n  shape: [8, 8, 1]\n", "  include: gone.yaml\n");
  CAPTURE(data);
  REQUIRE(data.size() == 1);
  CHECK(is_missing(data[0], "c.yaml:4:12"));
  // Keys of the section that are there are checked.
  const auto wrong = errors_with("  batch_size: 32\n  epochs: 2\n", "  include: gone.yaml\n  epochs: two\n");
  CAPTURE(wrong);
  REQUIRE(wrong.size() == 2);
  CHECK(is_missing(wrong[0], "c.yaml:12:12"));
  CHECK(wrong[1] == "c.yaml:13:11: epochs must be a whole number or none, not 'two'");
  const auto list = errors_with("  batch_size: 32\n", "  include: list.yaml\n");
  REQUIRE(list.size() == 1);
  CHECK(list[0].ends_with("must hold a map, not a list"));
}

TEST_CASE("errors that do not depend on a missing included file are reported with it") {
  const auto type =
      errors_with("train:\n  batch_size: 32\n  epochs: 2\n", "include: gone.yaml\ntrain:\n  epochs: two\n");
  CAPTURE(type);
  REQUIRE(type.size() == 2);
  CHECK(is_missing(type[0], "c.yaml:11:10"));
  CHECK(type[1] == "c.yaml:13:11: epochs must be a whole number or none, not 'two'");
  // The file would be a part of another section.
  const auto other =
      errors_with("dense: {units: 10, activation: softmax}", "dense: {activation: softmax}\nlog: {include: gone.yaml}");
  REQUIRE(other.size() == 2);
  CHECK(other[0] == "c.yaml:10:14: dense needs 'units': Number of outputs.");
  CHECK(is_missing(other[1], "c.yaml:11:16"));
}

}  // namespace trainctl::testing::included_files_test
