// The bytes of a file: mapped, or inflated from gzip or deflate with memory that follows what is there, not what a
// header claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace trainctl {

struct Bytes {
  std::shared_ptr<const std::byte> data;
  std::int64_t size = 0;

  const std::byte* begin() const { return data.get(); }
  // Bytes [offset, offset + length), which share the owner. The caller has checked that they exist.
  Bytes part(std::int64_t offset, std::int64_t length) const;
};

// Maps a file. Throws Error{data} where it is missing, a folder or not readable.
Bytes map_file(const std::string& path);

bool is_gzip(const Bytes& bytes);

enum class Deflate { gzip, raw };

// At most the first `most` bytes of what `compressed` inflates to; `path` is for errors.
Bytes inflate_prefix(const Bytes& compressed, Deflate format, std::int64_t most, const std::string& path);

// All bytes, which must be exactly `expected`. Throws Error{data} where they are fewer or more, or the stream is
// damaged.
Bytes inflate_exactly(const Bytes& compressed, Deflate format, std::int64_t expected, const std::string& path);

// Name, size and time of last change of a file, for fingerprints.
std::string describe_file(const std::string& path);

}  // namespace trainctl
