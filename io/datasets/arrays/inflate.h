// Inflates gzip and deflate streams; the memory used follows the inflated bytes, not the size in a header.
#pragma once

#include <cstdint>
#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

bool is_gzip(const Bytes& bytes);

enum class Deflate { gzip, raw };

// Inflates at most the first `most` bytes; `path` is for error messages. Throws Error{data} where the stream is
// damaged, std::bad_alloc or Error{resource} without memory.
Bytes inflate_prefix(const Bytes& compressed, Deflate format, std::int64_t most, const std::string& path);

// Inflates all bytes, of which there must be exactly `expected`. Throws Error{data} where there are fewer or more, or
// the stream is damaged; Error{resource} where they do not fit into the free memory.
Bytes inflate_exactly(const Bytes& compressed, Deflate format, std::int64_t expected, const std::string& path);

}  // namespace trainctl
