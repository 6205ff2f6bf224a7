// Compares files with memory, a piece that fits into the processor's cache at a time.
#include "io/checkpoint/read_back.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::size_t read_bytes = 512 << 10;  // bytes that are read at a time
constexpr std::size_t read_alignment =
    4 << 10;  // of memory, offsets and lengths for reads that bypass the kernel's copy

// A file that is read from its beginning, if possible without the kernel's copy of it.
class UncachedFile {
 public:
  explicit UncachedFile(const std::string& path) {
    open(path, O_DIRECT);
    if (descriptor_ < 0) {  // perhaps since the file system always uses the kernel's copy
      open(path, 0);
      drop_copy();
    }
  }
  ~UncachedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  UncachedFile(const UncachedFile&) = delete;
  UncachedFile& operator=(const UncachedFile&) = delete;

  // Returns the size in bytes, or -1 with errno.
  std::int64_t size() const {
    struct stat status {};
    return descriptor_ >= 0 && fstat(descriptor_, &status) == 0 ? status.st_size : -1;
  }

  // Reads up to `bytes` bytes at the offset. Returns their number, or -1 with errno.
  ssize_t read(std::byte* to, std::size_t bytes, std::int64_t offset) {
    for (;;) {
      const ssize_t count = pread(descriptor_, to, bytes, offset);
      if (count >= 0 || (errno != EINTR && errno != EINVAL)) return count;
      if (errno == EINVAL && !use_copy()) return -1;
    }
  }

 private:
  void open(const std::string& path, int flags) {
    do {
      descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
    } while (descriptor_ < 0 && errno == EINTR);
  }

  // Asks the kernel to read the file again from the disk, which not all file systems can do.
  void drop_copy() const {
    if (descriptor_ >= 0) posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  }

  // Reads through the kernel's copy from now on. Returns false if the file was read so before.
  bool use_copy() const {
    const int flags = fcntl(descriptor_, F_GETFL);
    if (flags < 0 || (flags & O_DIRECT) == 0 || fcntl(descriptor_, F_SETFL, flags & ~O_DIRECT) != 0) {
      errno = EINVAL;
      return false;
    }
    drop_copy();
    return true;
  }

  int descriptor_ = -1;
};

// Compares bytes that are read one after the other with the pieces.
class Comparison {
 public:
  explicit Comparison(std::span<const FilePiece> pieces) : pieces_(pieces) {}

  bool equals(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      while (!pieces_.empty() && done_ == pieces_.front().size()) next_piece();
      if (pieces_.empty()) return false;
      const std::size_t count = std::min(bytes.size(), pieces_.front().size() - done_);
      if (std::memcmp(bytes.data(), pieces_.front().data() + done_, count) != 0) return false;
      bytes = bytes.subspan(count);
      done_ += count;
    }
    return true;
  }

 private:
  void next_piece() {
    pieces_ = pieces_.subspan(1);
    done_ = 0;
  }

  std::span<const FilePiece> pieces_;
  std::size_t done_ = 0;  // bytes of the first piece that were compared
};

[[noreturn]] void throw_unreadable(const std::string& path, const std::string& shown) {
  const std::string why = std::generic_category().message(errno);
  throw Error(
      ErrorKind::resource, SourceLocation{shown},
      format("{} cannot be read again after it was written: {}", std::filesystem::path(path).filename().string(), why),
      "check the disk and its file system, or choose another run directory (--run-dir)");
}

}  // namespace

// Whether the file has these bytes and no others.
bool FileVerifier::is_equal(const std::string& path, const std::string& shown, std::span<const FilePiece> pieces) {
  std::int64_t expected = 0;
  for (const FilePiece& piece : pieces) expected += std::ssize(piece);
  UncachedFile file(path);
  const std::int64_t size = file.size();
  if (size < 0) throw_unreadable(path, shown);
  if (size != expected) return false;
  if (!buffer_) buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(read_alignment, read_bytes)));
  require(buffer_ != nullptr, "no memory to read a file");
  Comparison comparison(pieces);
  for (std::int64_t offset = 0; offset < size;) {
    const ssize_t count = file.read(buffer_.get(), read_bytes, offset);
    if (count < 0) throw_unreadable(path, shown);
    if (count == 0 || !comparison.equals({buffer_.get(), static_cast<std::size_t>(count)})) return false;
    offset += count;
  }
  return true;
}

void FileVerifier::verify(const std::string& path, const std::string& shown, std::span<const FilePiece> pieces) {
  if (is_equal(path, shown, pieces)) return;
  throw Error(ErrorKind::resource, SourceLocation{shown},
              format("{} differs on the disk from what was written", std::filesystem::path(path).filename().string()),
              "check the disk and its file system, or choose another run directory (--run-dir)");
}

}  // namespace trainctl
