// Tests the comparison of file names with capitals and without them.
#include "core/base/file_names.h"

#include <filesystem>
#include <fstream>

#include "test/catch.h"

namespace trainctl::test::file_names_test {

TEST_CASE("endings of file names may have capitals") {
  CHECK(has_ending("a.csv", {".csv"}));
  CHECK(has_ending("folder.d/A.Csv", {".tsv", ".csv"}));
  CHECK(has_ending("X.NII.GZ", {".nii.gz"}));
  CHECK_FALSE(has_ending("a.csv.gz", {".csv"}));
  CHECK_FALSE(has_ending("csv", {".csv"}));
  CHECK_FALSE(has_ending("a.csv", {}));
  CHECK(lower_case("\xC3\x84 B-Z") == "\xC3\x84 b-z");  // only the letters A to Z
}

TEST_CASE("the first name that a folder has is found, in capitals only if no other entry has it exactly") {
  const auto folder = std::filesystem::temp_directory_path() / "trainctl-file-names-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "Masks");
  for (const char* name : {"Train.csv", "train.CSV", "val.csv", "VAL.csv"}) std::ofstream(folder / name) << "a\n";
  const auto found = [&](const std::vector<std::string>& names) {
    const std::string path = first_in_folder(folder.string(), names);
    return path.empty() ? "" : std::filesystem::path(path).filename().string();
  };
  CHECK(found({"val.csv"}) == "val.csv");
  CHECK(found({"none.csv", "train.csv"}) == "Train.csv");  // the first one in bytewise order
  CHECK(found({"masks"}) == "Masks");
  CHECK(found({"test.csv"}).empty());
  std::filesystem::remove_all(folder);
}

}  // namespace trainctl::test::file_names_test
