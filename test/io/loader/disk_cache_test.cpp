// Tests `cache: disk`: rows are intact or absent, whatever happens to the file and whichever processes write it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "io/loader/cache/cache.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::disk_cache_test {
namespace {

constexpr std::int64_t samples = 40, bytes = 1000;

std::string row(std::int64_t sample) { return random_bytes(bytes, static_cast<unsigned>(sample) + 1); }

void fill(SampleCache& cache, std::int64_t sample) {
  std::vector<std::byte> memory;
  std::byte* to = cache.claim(sample, memory);
  REQUIRE(to != nullptr);
  std::memcpy(to, row(sample).data(), bytes);
  cache.publish(sample, memory);
}

// 1: the row is there, 0: it is absent, -1: it is wrong.
int state(SampleCache& cache, std::int64_t sample) {
  std::vector<std::byte> memory;
  const std::byte* found = cache.find(sample, memory);
  if (found == nullptr) return 0;
  return std::memcmp(found, row(sample).data(), bytes) == 0 ? 1 : -1;
}

std::vector<std::string> files_in(const TempFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.text())) names.push_back(entry.path().string());
  return names;
}

std::unique_ptr<SampleCache> open_cache(const TempFolder& folder, const std::string& key = "key") {
  return disk_cache(folder.text(), key, samples, samples, bytes);
}

}  // namespace

TEST_CASE("rows on disk are found again by the same key only, and damaged rows are not found") {
  const TempFolder folder;
  {
    const auto cache = open_cache(folder);
    for (std::int64_t i = 0; i < samples; i += 2) fill(*cache, i);
    for (std::int64_t i = 0; i < samples; ++i) CHECK(state(*cache, i) == (i % 2 == 0));
  }
  REQUIRE(files_in(folder).size() == 1);  // nothing temporary is left
  const std::string path = files_in(folder).front();
  const auto other = open_cache(folder, "another key");
  for (std::int64_t i = 0; i < samples; ++i) CHECK(state(*other, i) == 0);

  std::string content = read_whole(path);
  const std::size_t at = content.find(row(4));
  REQUIRE(at != std::string::npos);
  content[at + 500] = static_cast<char>(content[at + 500] ^ 1);
  write_file(path, content);
  const auto again = open_cache(folder);
  for (std::int64_t i = 0; i < samples; ++i) CHECK(state(*again, i) == (i % 2 == 0 && i != 4));
  fill(*again, 4);
  CHECK(state(*again, 4) == 1);

  write_file(path, content.substr(0, content.size() - 1));  // a truncated file is created anew
  const auto anew = open_cache(folder);
  for (std::int64_t i = 0; i < samples; ++i) CHECK(state(*anew, i) == 0);
  write_file(path, random_bytes(content.size(), 9));
  CHECK(state(*open_cache(folder), 2) == 0);
}

TEST_CASE("two processes fill one cache at the same time") {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    bool good = true;
    for (int round = 0; round < 20; ++round) {
      const auto cache = open_cache(folder);
      for (std::int64_t i = 0; i < samples; ++i) {
        good = good && state(*cache, i) >= 0;
        std::vector<std::byte> memory;
        std::memcpy(cache->claim(i, memory), row(i).data(), bytes);
        cache->publish(i, memory);
      }
    }
    _exit(good ? 0 : 1);
  }
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    const auto cache = open_cache(folder);
    for (std::int64_t i = samples - 1; i >= 0; --i) {
      wrong += state(*cache, i) < 0;
      fill(*cache, i);
    }
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(wrong == 0);
  CHECK(files_in(folder).size() == 1);
  const auto cache = open_cache(folder);
  for (std::int64_t i = 0; i < samples; ++i) CHECK(state(*cache, i) == 1);
}

TEST_CASE("an unfinished cache file of a killed process is removed, one of a running process is not") {
  const TempFolder folder;
  open_cache(folder);
  const std::string cache = std::filesystem::path(files_in(folder).front()).filename().string();
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  REQUIRE(waitpid(dead, nullptr, 0) == dead);  // no process has this ID now
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  const auto temporary = [&](pid_t process, const std::string& on, const std::string& name) {
    return folder / format(".partial-{}.1234-{}-{}", process, on, name);
  };
  const std::string left = temporary(dead, host, cache);
  const std::vector<std::string> kept = {temporary(getppid(), host, cache), temporary(dead, "another-host", cache),
                                         temporary(dead, host, "samples-of-others")};
  write_file(left, "x");
  for (const std::string& path : kept) write_file(path, "x");
  open_cache(folder);  // the cache file exists, as if its writer was killed after it renamed the file
  CHECK_FALSE(std::filesystem::exists(left));
  write_file(left, "x");
  std::filesystem::remove(folder / cache);
  open_cache(folder);
  CHECK_FALSE(std::filesystem::exists(left));
  for (const std::string& path : kept) {
    INFO(path);
    CHECK(std::filesystem::exists(path));
  }
  CHECK(files_in(folder).size() == 1 + kept.size());
}

TEST_CASE("too little disk space and a cache_path that is not a folder are resource errors") {
  const TempFolder folder;
  write_file(folder / "file", "");
  for (const auto& [path, count] :
       {std::pair{folder.text(), std::int64_t{1} << 48}, {folder / "file", std::int64_t{1}}}) {
    try {
      disk_cache(path, "key", count, count, bytes);
      FAIL("no error");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.kind() == ErrorKind::resource);
      CHECK(std::string(error.what()).find("cache_path") != std::string::npos);
    }
  }
}

TEST_CASE("describing data creates no disk cache, but reports the size that it would have") {
  const TempFolder folder;
  for (int n = 0; n < 10; ++n) {
    write_file(folder / format("data/a/{}.png", n), png(12, 10, 2, random_bytes(360, static_cast<unsigned>(n))));
  }
  const DataOptions options = data_options(
      format("{{dataset: image_folder, path: {}, transform: [{{resize: [8, 8]}}], validation: {{split: 0.3}}, "
             "cache: disk, cache_path: {}}}",
             folder / "data", folder / "below/cache"));
  const DataInfo info = describe(options, 1);
  CHECK(info.cached_bytes == 10 * 8 * 8 * 3 * 4);
  CHECK_FALSE(std::filesystem::exists(folder / "below"));
  CHECK(Data(options, 1).info().cached_bytes == info.cached_bytes);
  CHECK(std::filesystem::exists(folder / "below/cache"));
  CHECK_THROWS_WITH(check_disk_cache(folder / "other", "key", std::int64_t{1} << 40, 1 << 20),
                    Catch::Contains("cache_path"));
  CHECK_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_CASE("batches from a disk cache equal decoded ones, in this run and in the next") {
  const TempFolder folder;
  for (int n = 0; n < 9; ++n) {
    write_file(folder / format("data/{}/{}.png", n % 2, n),
               png(12, 10, 2, random_bytes(360, static_cast<unsigned>(n))));
  }
  const auto read = [&](const std::string& cache) {
    const Data data(data_options(format("{{dataset: image_folder, path: {}, transform: [{{resize: [8, 8]}}], "
                                        "augment: [{{random_flip: horizontal}}], validation: {{split: 0.3}}{}}}",
                                        folder / "data", cache)),
                    4);
    const auto source = data.training(2, {}, {4, 0, 0});
    std::vector<float> values;
    for (int i = 0; i < 12; ++i) {
      const Batch& batch = source->next();
      values.insert(values.end(), batch.inputs[0].as<float>(), batch.inputs[0].as<float>() + batch.inputs[0].count);
    }
    return values;
  };
  const std::vector<float> plain = read("");
  const std::string disk = format(", cache: disk, cache_path: {}", folder / "cache");
  CHECK(read(disk) == plain);
  std::int64_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
    ++kept;
    // A hash detects the damage, and the samples are decoded again.
    std::string content = read_whole(entry.path().string());
    for (std::size_t i = 200; i < content.size(); i += 300) content[i] = static_cast<char>(content[i] + 1);
    CHECK(read(disk) == plain);
    write_file(entry.path().string(), content);
    CHECK(read(disk) == plain);
  }
  CHECK(kept == 1);
}

}  // namespace trainctl::test::disk_cache_test
