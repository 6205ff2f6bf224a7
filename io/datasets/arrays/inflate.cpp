// Inflates compressed bytes with zlib.
#include "io/datasets/arrays/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include "core/base/format.h"
#include "core/base/memory.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

// A zlib stream, which the destructor closes.
struct Inflater {
  z_stream stream{};

  explicit Inflater(Deflate format) {
    // 15: the largest window; +16: with a gzip header and its checksum; negative: bare deflate
    if (inflateInit2(&stream, format == Deflate::gzip ? 15 + 16 : -15) != Z_OK) {
      throw Error(ErrorKind::resource, "there is no memory to inflate a file");
    }
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

// Continues with the next member of a gzip file, which begins at offset `read`; the contents of all members are
// concatenated. Returns false if there is no further member: zeros and other bytes at the end are ignored.
bool next_member(const Bytes& compressed, z_stream& stream, std::int64_t read) {
  constexpr unsigned char magic[] = {0x1f, 0x8b};
  unsigned char begin[2] = {};
  if (compressed.size() - read < 2) return false;
  compressed.read(read, begin, 2);
  return std::equal(begin, begin + 2, magic) && inflateReset(&stream) == Z_OK;
}

struct Inflated {
  std::shared_ptr<std::vector<std::byte>> bytes;
  bool ended = false;  // the end of the compressed stream was reached, and its checksum is right
};

// Inflates at most `max_bytes` + 1 bytes: the last one shows that there are more. The buffer grows to at most twice the
// number of inflated bytes. Throws std::bad_alloc if they do not fit into the free memory.
Inflated inflate_up_to(const Bytes& compressed, Deflate format, std::int64_t max_bytes, const std::string& path) {
  constexpr std::int64_t chunk = 256 << 10;
  Inflater inflater(format);
  z_stream& stream = inflater.stream;
  Inflated result{std::make_shared<std::vector<std::byte>>(), false};
  std::vector<std::byte> buffer;  // a piece of the compressed bytes, if they are read from a file
  std::vector<std::byte>& out = *result.bytes;
  const std::int64_t limit = max_bytes == std::numeric_limits<std::int64_t>::max() ? max_bytes : max_bytes + 1;
  std::int64_t read = 0, written = 0;
  while (written < limit && !result.ended) {
    if (written == static_cast<std::int64_t>(out.size())) {
      const std::int64_t larger = std::min(limit, std::max<std::int64_t>(4096, 2 * written));
      if (larger > largest_in_memory && larger > available_memory().value_or(larger)) throw std::bad_alloc();
      out.resize(static_cast<std::size_t>(larger));
    }
    const std::int64_t input = std::min(chunk, compressed.size() - read);
    const std::int64_t space = std::min<std::int64_t>(static_cast<std::int64_t>(out.size()) - written, 1 << 30);
    const std::byte* from = compressed.in_memory() ? compressed.in_memory() + read : nullptr;
    if (!from) {
      buffer.resize(static_cast<std::size_t>(chunk));
      compressed.read(read, buffer.data(), input);
      from = buffer.data();
    }
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from));
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(space);
    const int status = inflate(&stream, Z_NO_FLUSH);
    read += input - stream.avail_in;
    written += space - stream.avail_out;
    if (status == Z_STREAM_END) {
      result.ended = format != Deflate::gzip || !next_member(compressed, stream, read);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      data_error(path, "the compressed data is damaged", "get the file again");
    } else if (input == 0 && stream.avail_out > 0) {
      break;  // the input has ended, and zlib has no more output
    }
  }
  out.resize(static_cast<std::size_t>(written));
  return result;
}

Bytes as_bytes(const std::shared_ptr<std::vector<std::byte>>& owner) {
  return {std::shared_ptr<const std::byte>(owner, owner->data()), static_cast<std::int64_t>(owner->size())};
}

}  // namespace

bool is_gzip(const Bytes& bytes) {
  if (bytes.size() < 2) return false;
  std::byte magic[2];
  bytes.read(0, magic, 2);
  return magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
}

Bytes inflate_prefix(const Bytes& compressed, Deflate format, std::int64_t max_bytes, const std::string& path) {
  Inflated inflated = inflate_up_to(compressed, format, max_bytes, path);
  return prefix(as_bytes(inflated.bytes), max_bytes);
}

Bytes inflate_exactly(const Bytes& compressed, Deflate format, std::int64_t expected, const std::string& path) {
  const auto no_memory = [&] {
    return Error(ErrorKind::resource, SourceLocation{path},
                 trainctl::format("there is no memory for {} uncompressed bytes", expected),
                 "decompress the file: it is then read from disk on demand");
  };
  Inflated inflated;
  try {
    inflated = inflate_up_to(compressed, format, expected, path);
  } catch (const std::bad_alloc&) {
    throw no_memory();
  }
  const auto size = static_cast<std::int64_t>(inflated.bytes->size());
  if (size < expected || (size == expected && !inflated.ended)) {
    data_error(path,
               trainctl::format("is truncated: it has {} uncompressed bytes of the {} in its header", size, expected),
               "get the file again");
  }
  if (size > expected) {
    data_error(path, trainctl::format("holds more than the {} uncompressed bytes in its header", expected));
  }
  return as_bytes(inflated.bytes);
}

}  // namespace trainctl
