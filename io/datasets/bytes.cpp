// Mapping files and inflating them (the home of zlib for data sets).
#include "io/datasets/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "core/base/format.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

constexpr const char* where_data_is =
    "configs of trainctl look for their data in the folder that TRAINCTL_DATA names (default: data)";

// A zlib stream that ends with its scope.
struct Inflater {
  z_stream stream{};

  explicit Inflater(Deflate format) {
    // 15: the largest window; +16: a gzip header, which carries a check sum; negative: bare deflate.
    if (inflateInit2(&stream, format == Deflate::gzip ? 15 + 16 : -15) != Z_OK) {
      throw Error(ErrorKind::resource, "no memory to inflate a file");
    }
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

struct Inflated {
  std::shared_ptr<std::vector<std::byte>> bytes;
  bool ended = false;  // the compressed stream came to its end, its check sum right
};

// Inflates up to `most` bytes and one more, to see whether there are more. The buffer at most doubles what is really
// there.
Inflated inflate_up_to(const Bytes& compressed, Deflate format, std::int64_t most, const std::string& path) {
  constexpr std::int64_t chunk = 1 << 20;
  Inflater inflater(format);
  z_stream& stream = inflater.stream;
  Inflated result{std::make_shared<std::vector<std::byte>>(), false};
  std::vector<std::byte>& out = *result.bytes;
  const std::int64_t limit = most == std::numeric_limits<std::int64_t>::max() ? most : most + 1;
  std::int64_t read = 0, written = 0;
  while (written < limit && !result.ended) {
    if (written == static_cast<std::int64_t>(out.size())) {
      out.resize(static_cast<std::size_t>(std::min(limit, std::max<std::int64_t>(4096, 2 * written))));
    }
    const std::int64_t input = std::min(chunk, compressed.size - read);
    const std::int64_t room = std::min<std::int64_t>(static_cast<std::int64_t>(out.size()) - written, 1 << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(compressed.begin() + read));
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    read += input - stream.avail_in;
    written += room - stream.avail_out;
    if (status == Z_STREAM_END) {
      result.ended = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      data_error(path, "the compressed data is damaged", "get the file again");
    } else if (input == 0 && stream.avail_out > 0) {
      break;  // no more input, and zlib has nothing left to give
    }
  }
  out.resize(static_cast<std::size_t>(written));
  return result;
}

Bytes as_bytes(const std::shared_ptr<std::vector<std::byte>>& owner) {
  return {std::shared_ptr<const std::byte>(owner, owner->data()), static_cast<std::int64_t>(owner->size())};
}

}  // namespace

void data_error(const std::string& path, const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::data, Place{path}, message, remedy);
}

Bytes Bytes::part(std::int64_t offset, std::int64_t length) const {
  return {std::shared_ptr<const std::byte>(data, data.get() + offset), length};
}

Bytes map_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) data_error(path, format("cannot be opened: {}", std::strerror(errno)), where_data_is);
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    data_error(path, "is not a file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    close(file);
    data_error(path, "is empty", "get the file again");
  }
  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (address == MAP_FAILED) data_error(path, format("cannot be mapped: {}", std::strerror(error)));
  return {
      std::shared_ptr<const std::byte>(static_cast<const std::byte*>(address),
                                       [size](const std::byte* data) { munmap(const_cast<std::byte*>(data), size); }),
      static_cast<std::int64_t>(size)};
}

bool is_gzip(const Bytes& bytes) {
  return bytes.size >= 2 && bytes.begin()[0] == std::byte{0x1f} && bytes.begin()[1] == std::byte{0x8b};
}

Bytes inflate_prefix(const Bytes& compressed, Deflate format, std::int64_t most, const std::string& path) {
  Inflated inflated = inflate_up_to(compressed, format, most, path);
  Bytes bytes = as_bytes(inflated.bytes);
  bytes.size = std::min(bytes.size, most);
  return bytes;
}

Bytes inflate_exactly(const Bytes& compressed, Deflate format, std::int64_t expected, const std::string& path) {
  Inflated inflated;
  try {
    inflated = inflate_up_to(compressed, format, expected, path);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::resource, Place{path}, trainctl::format("no memory for {} uncompressed bytes", expected),
                "decompress the file: it is then read where it lies");
  }
  const auto size = static_cast<std::int64_t>(inflated.bytes->size());
  if (size < expected || (size == expected && !inflated.ended)) {
    data_error(path,
               trainctl::format("is truncated: {} uncompressed bytes of the {} that its header states", size, expected),
               "get the file again");
  }
  if (size > expected) {
    data_error(path, trainctl::format("holds more than the {} uncompressed bytes that its header states", expected));
  }
  return as_bytes(inflated.bytes);
}

std::string describe_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return path;
  return format("{}:{}:{}.{:09}", std::filesystem::path(path).filename().string(), status.st_size,
                status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace trainctl
