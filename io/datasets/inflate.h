// Inflating gzip and deflate, with memory that follows what is there, not what a header claims.
#pragma once

#include <cstdint>
#include <string>

#include "io/datasets/bytes.h"

namespace trainctl {

bool is_gzip(const Bytes& bytes);

enum class Deflate { gzip, raw };

// At most the first `most` bytes of what `compressed` inflates to; `path` is for errors.
Bytes inflate_prefix(const Bytes& compressed, Deflate format, std::int64_t most, const std::string& path);

// All bytes, which must be exactly `expected`. Throws Error{data} where they are fewer or more, or the stream is
// damaged, Error{resource} where they do not fit into the memory that is free.
Bytes inflate_exactly(const Bytes& compressed, Deflate format, std::int64_t expected, const std::string& path);

}  // namespace trainctl
