// Tests a file of records on a disk that is full for a time.
#include "io/metrics/record_file.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <random>

#include "core/base/log.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::record_file_test {
namespace {

// Limits the size of files that this process writes, for the life of the object: like a full disk, but without root.
struct FileSizeLimit {
  rlimit before;
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before); }
};

int open_file(const std::string& path) { return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }

}  // namespace

TEST_CASE("records that cannot be written are kept whole and written later, in their order") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 30; ++trial) {
    const TemporaryFolder folder;
    const std::string path = folder / "records";
    std::string expected;
    const auto next = [&] {
      expected += std::string(1 + random() % 60, static_cast<char>('a' + random() % 26)) + "\n";
      return expected.substr(expected.rfind('\n', expected.size() - 2) + 1);
    };
    RecordFile file(path, open_file(path));
    for (unsigned i = random() % 20; i > 0; --i) file.append(next());
    CHECK(read_text(path) == expected);
    const std::string before = expected;
    {
      const FileSizeLimit limit(before.size() + random() % 30);  // a record fits in part
      for (int i = 0; i < 20; ++i) {
        file.append(next());
        const std::string found = read_text(path);
        CHECK((found.empty() || found.back() == '\n'));
        CHECK(expected.starts_with(found));
      }
      CHECK(file.missing() > 0);
    }
    file.append(next());
    CHECK(file.missing() == 0);
    CHECK(read_text(path) == expected);
  }
}

TEST_CASE("records beyond the memory for them are counted, and the log says so") {
  const TemporaryFolder folder;
  const std::string path = folder / "records", lines = folder / "log.txt";
  log::add_file(lines, log::Level::info);
  RecordFile file(path, open_file(path));
  file.append("first\n");
  const std::string record = std::string(99'999, 'x') + "\n";
  {
    const FileSizeLimit limit(50'000);
    for (int i = 0; i < 13; ++i) file.append(record);
    file.finish();
    CHECK(file.missing() == 13);
  }
  file.append("last\n");
  CHECK(file.missing() == 3);  // ten records were kept
  CHECK(read_text(path).size() == 6 + 10 * record.size() + 5);
  CHECK(read_text(path).ends_with("x\nlast\n"));
  file.finish();
  const std::string said = read_text(lines);
  CHECK(contains(said, path + ": cannot write: File too large; training goes on"));
  CHECK(contains(said, path + ": 13 records are missing"));
  CHECK(contains(said, path + " can be written again; 3 records are missing"));
  CHECK(contains(said, path + ": 3 records are missing"));
}

}  // namespace trainctl::test::record_file_test
