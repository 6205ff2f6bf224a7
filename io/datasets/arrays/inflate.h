// Inflates gzip and deflate streams. The memory used depends on the number of inflated bytes, not on the size in a
// header.
#pragma once

#include <cstdint>
#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// Whether the bytes begin like a gzip file.
bool is_gzip(const Bytes& bytes);

// The format of a compressed stream: a gzip file, or deflated bytes without a header.
enum class Deflate { gzip, raw };

// Inflates at most the first `max_bytes` bytes; `path` is for error messages. Throws Error{data} if the stream is
// damaged, std::bad_alloc or Error{resource} if memory is missing.
Bytes inflate_prefix(const Bytes& compressed, Deflate format, std::int64_t max_bytes, const std::string& path);

// Inflates all bytes, which must be exactly `expected`. Throws Error{data} if there are fewer or more, or the stream is
// damaged; Error{resource} if they do not fit into the free memory.
Bytes inflate_exactly(const Bytes& compressed, Deflate format, std::int64_t expected, const std::string& path);

}  // namespace trainctl
