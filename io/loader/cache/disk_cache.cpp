// The cache on disk: a file of rows, each after its hash. Rows are written in place; an incomplete row is recognized by
// its hash, which is verified at every read.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "io/checkpoint/temporary_name.h"
#include "io/loader/cache/cache.h"

namespace trainctl {
namespace {

using Hash = std::uint64_t;
constexpr std::int64_t hash_bytes = sizeof(Hash);  // bytes before each row

// The beginning of the file.
struct Header {
  char magic[8] = {'t', 'c', 's', 'a', 'm', 'p', 'l', '1'};
  char key[64] = {};  // SHA-256 of the key, in hexadecimal digits
  std::int64_t samples = 0, row_bytes = 0;

  bool operator==(const Header&) const = default;
};

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ErrorKind::resource, SourceLocation{path},
              "`cache: disk` cannot write this file: " + std::generic_category().message(error),
              "set `cache_path` to a folder that can be written, or leave `cache` out");
}

// A hash of 0 means that the row was never written.
Hash hash_of(const std::byte* row, std::int64_t bytes) {
  const Hash hash = xxh3(row, static_cast<std::size_t>(bytes));
  return hash == 0 ? 1 : hash;
}

class DiskCache final : public SampleCache {
 public:
  DiskCache(std::string path, const Header& header) : path_(std::move(path)), header_(header) {
    remove_dead_temporaries(path_);
    stride_ = checked_add(hash_bytes, header.row_bytes);
    size_ = checked_add(static_cast<std::int64_t>(sizeof(Header)), checked_multiply(stride_, header.samples));
    for (int attempt = 0; !open_existing(); ++attempt) {
      if (attempt == 3) fail(path_, EEXIST);
      create();
    }
  }
  ~DiskCache() override { close(descriptor_); }
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  const std::byte* find(std::int64_t sample, std::vector<std::byte>& memory) override {
    memory.resize(static_cast<std::size_t>(stride_));
    if (pread(descriptor_, memory.data(), memory.size(), offset(sample)) != stride_) return nullptr;
    Hash stored = 0;
    std::memcpy(&stored, memory.data(), sizeof stored);
    const std::byte* row = memory.data() + hash_bytes;
    return stored != 0 && stored == hash_of(row, header_.row_bytes) ? row : nullptr;
  }

  std::byte* claim(std::int64_t, std::vector<std::byte>& memory) override {
    if (full_.load(std::memory_order_relaxed)) return nullptr;
    memory.assign(static_cast<std::size_t>(stride_), std::byte{0});
    return memory.data() + hash_bytes;
  }

  void publish(std::int64_t sample, std::vector<std::byte>& memory) override {
    const Hash hash = hash_of(memory.data() + hash_bytes, header_.row_bytes);
    std::memcpy(memory.data(), &hash, sizeof hash);
    const ssize_t written = pwrite(descriptor_, memory.data(), memory.size(), offset(sample));
    if (written == stride_ || full_.exchange(true)) return;
    const int error = written < 0 ? errno : ENOSPC;
    log::warning(format("{}: {}; `cache: disk` keeps no further samples: they are read again in every epoch", path_,
                        std::generic_category().message(error)));
  }

 private:
  off_t offset(std::int64_t sample) const { return static_cast<off_t>(sizeof(Header)) + sample * stride_; }

  // Opens the file. Returns false if there is none; a file that is not a cache with these rows is removed with a
  // warning.
  bool open_existing() {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0 && errno == ENOENT) return false;
    if (descriptor_ < 0) fail(path_, errno);
    Header found;
    struct stat file {};
    if (pread(descriptor_, &found, sizeof found, 0) == sizeof found && found == header_ &&
        fstat(descriptor_, &file) == 0 && file.st_size == size_)
      return true;
    log::warning(format("{} is damaged; the cache is filled again", path_));
    close(descriptor_);
    unlink(path_.c_str());
    return false;
  }

  // Creates the file under a temporary name and links it to its final name, unless another process has created it
  // first. If the process is killed meanwhile, the temporary file remains; the next cache of this file removes it.
  void create() const {
    const std::string temporary = temporary_name(path_, format("{}", reinterpret_cast<std::uintptr_t>(this)));
    unlink(temporary.c_str());  // it may remain from an earlier process with the same number
    const int file = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) fail(path_, errno);
    const bool good = ftruncate(file, size_) == 0 && pwrite(file, &header_, sizeof header_, 0) == sizeof header_ &&
                      fsync(file) == 0 && (link(temporary.c_str(), path_.c_str()) == 0 || errno == EEXIST);
    const int error = errno;
    close(file);
    unlink(temporary.c_str());
    if (!good) fail(path_, error);
  }

  std::string path_;
  Header header_;
  std::int64_t stride_ = 0, size_ = 0;  // bytes of a row with its hash, and of the file
  int descriptor_ = -1;
  std::atomic<bool> full_{false};
};

std::string path_of(const std::string& folder, const std::string& digest) {
  return format("{}/samples-{}", folder, digest.substr(0, 32));
}

// Throws Error{resource} if the disk has no space for the rows that the file `path` does not hold yet. `rows` is the
// number of rows that are read.
void check_space(const std::string& path, std::int64_t rows, std::int64_t row_bytes) {
  struct stat file {};
  const std::int64_t held = stat(path.c_str(), &file) == 0 ? std::int64_t{file.st_blocks} * 512 : 0;
  std::filesystem::path location = path;
  std::error_code failure;
  while (location.has_relative_path() && !std::filesystem::exists(location, failure)) location = location.parent_path();
  struct statvfs disk {};
  if (statvfs(location.c_str(), &disk) != 0) return;
  const auto free = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t needed = checked_multiply(rows, checked_add(hash_bytes, row_bytes)) - held;
  if (needed <= free) return;
  throw Error(ErrorKind::resource, SourceLocation{path},
              format("`cache: disk` needs {} more for {}, but only {} are free", byte_text(needed),
                     counted(rows, "sample"), byte_text(free)),
              "set `cache_path` to a folder with more free space, or leave `cache` out");
}

}  // namespace

std::unique_ptr<SampleCache> disk_cache(const std::string& folder, const std::string& key, std::int64_t samples,
                                        std::int64_t used, std::int64_t row_bytes) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) fail(folder, failure.value());
  Header header;
  const std::string digest = sha256(key.data(), key.size());
  std::memcpy(header.key, digest.data(), sizeof header.key);
  header.samples = samples;
  header.row_bytes = row_bytes;
  const std::string path = path_of(folder, digest);
  auto cache = std::make_unique<DiskCache>(path, header);
  check_space(path, used, row_bytes);
  return cache;
}

void check_disk_cache(const std::string& folder, const std::string& key, std::int64_t used, std::int64_t row_bytes) {
  check_space(path_of(folder, sha256(key.data(), key.size())), used, row_bytes);
}

}  // namespace trainctl
