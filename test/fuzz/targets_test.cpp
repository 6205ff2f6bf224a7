// Runs every target on its corpus and on seeded mutations of it. TRAINCTL_MUTATIONS sets the number of mutations of
// each file.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/fuzz/targets.h"
#include "test/support/mutation.h"
#include "test/support/time_limit.h"

namespace trainctl::fuzz::targets_test {
namespace {

namespace fs = std::filesystem;

const std::string corpus = TRAINCTL_SOURCE_DIR "/test/fuzz/corpus/";

std::vector<std::string> files_of(const Target& target) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(corpus + target.name)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += format("{:02x}", byte);
  return text;
}

// Whether a target reads an input. A fault is reported with the input.
bool is_read(const Target& target, const std::string& bytes, const std::string& origin) {
  constexpr double limit = 5.0 * test::sanitizer_slowdown;  // seconds
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run(target, bytes);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (!outcome.fault.empty() || taken.count() > limit) {
    FAIL_CHECK(target.name << ", " << origin << ": " << outcome.fault << " after " << taken.count()
                           << " s for the bytes " << hexadecimal(bytes));
  }
  return outcome.is_read;
}

}  // namespace

TEST_CASE("fuzz targets: the corpus and mutations of it are read or refused") {
  std::size_t all_bytes = 0;
  for (const Target& target : targets()) {
    const std::vector<std::string> files = files_of(target);
    REQUIRE(!files.empty());
    std::mt19937 random(48);
    bool reads_one = false;
    for (const std::string& path : files) {
      const std::string bytes = content_of(path);
      all_bytes += bytes.size();
      reads_one |= is_read(target, bytes, path);
      for (int i = 0; i < test::mutations(); ++i)
        is_read(target, test::mutated(bytes, random), format("{}, mutation {}", path, i));
    }
    INFO(target.name);
    CHECK(reads_one);
  }
  CHECK(all_bytes < 300'000);
}

TEST_CASE("fuzz targets: an exception of another kind is a fault") {
  const Target refuses{"refuses", [](std::string_view) { throw Error(ErrorKind::data, "no"); }, {ErrorKind::data}};
  CHECK(run(refuses, "").fault.empty());
  CHECK_FALSE(run(refuses, "").is_read);
  const Target other{"other", [](std::string_view) { throw Error(ErrorKind::internal, "bug"); }, {ErrorKind::data}};
  CHECK_THAT(run(other, "").fault, Catch::Contains("another kind") && Catch::Contains("bug"));
  const Target standard{"standard", [](std::string_view bytes) { expect(bytes.empty(), "wrong"); }, {}};
  CHECK(run(standard, "").is_read);
  CHECK_THAT(run(standard, "x").fault, Catch::Contains("other than Error: wrong"));
}

}  // namespace trainctl::fuzz::targets_test
