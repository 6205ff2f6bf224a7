// Tests that measurements are read back from their file, and that a damaged file is refused.
#include "parallel/plan/measured/measurements.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "core/base/error.h"
#include "run/job/user_cache.h"
#include "test/catch.h"

namespace trainctl::measurements_test {
namespace {

Measurements some(unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-20, 3);
  Measurements measurements;
  for (int i = 0; i < 40; ++i) {
    std::vector<double> values;
    for (std::uint64_t k = 0; k < random() % 5; ++k) values.push_back(std::exp(exponent(random)));
    measurements.record("2 at once: op dense " + std::to_string(random()), values);
  }
  return measurements;
}

bool refused(const std::string& text) {
  Measurements read;
  try {
    read.add_file(text);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::data && read.empty();
  }
  return false;
}

// Moves the user's cache to a temporary folder.
struct OwnCache {
  std::string path = "/tmp/trainctl-cache-XXXXXX";
  OwnCache() {
    REQUIRE(mkdtemp(path.data()) != nullptr);
    setenv("XDG_CACHE_HOME", path.c_str(), 1);
  }
  ~OwnCache() {
    unsetenv("XDG_CACHE_HOME");
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("measurements are read back from their file to the last bit") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Measurements read;
    read.add_file(some(seed).file_text());
    CHECK(read == some(seed));
  }
}

TEST_CASE("a file of measurements that is damaged anywhere is refused") {
  const std::string whole = some(3).file_text();
  REQUIRE(!refused(whole));
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    CAPTURE(i);
    CHECK(refused(whole.substr(0, i)));
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK(refused(changed));
  }
}

TEST_CASE("the user's cache returns what was stored, and renames a damaged file") {
  const OwnCache cache;
  const CachedFile file{"measurements", "a machine", "measurements", "this machine is measured again"};
  const auto load = [&] {
    Measurements read;
    load_cached(file, [&](const std::string& text) { read.add_file(text); });
    return read;
  };
  CHECK(load().empty());
  keep_cached(file, some(1).file_text());
  CHECK(load() == some(1));
  CachedFile other = file;
  other.fingerprint = "another machine";
  load_cached(other, [](const std::string&) { FAIL("it has no file"); });

  std::string text = some(1).file_text();
  text[text.size() / 2] ^= 1;
  keep_cached(file, text);
  CHECK(load().empty());
  CHECK(load().empty());
  int aside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(cache.path) / "trainctl")) {
    CHECK(entry.path().extension() == ".damaged");
    CHECK(contents(entry.path()) == text);
    ++aside;
  }
  CHECK(aside == 1);
}

}  // namespace trainctl::measurements_test
