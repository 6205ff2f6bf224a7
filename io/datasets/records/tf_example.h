// tf.train.Example: named lists of bytes, floats or whole numbers, as protocol buffers encode them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/cursor.h"

namespace trainctl {

// The bytes [begin, end) of what a cursor reads.
struct Span {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
};

// The list of a feature: one of the three, as `kind` says.
struct TfFeature {
  enum class Kind { none, bytes, floats, integers };

  Kind kind = Kind::none;
  std::vector<Span> bytes;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::int64_t count() const { return std::ssize(bytes) + std::ssize(floats) + std::ssize(integers); }
};

// Calls visit(name, span) for every feature of an Example; the span is that of its Feature message, for read_feature().
// Values that are not read are passed over. Features with names of more than 1024 bytes are left out. False where the
// bytes are no Example.
bool for_each_feature(Cursor& cursor, Span example, const std::function<void(std::string_view, Span)>& visit);

// Reads a feature of at most `most` values. False where the bytes are no Feature, or there are more.
bool read_feature(Cursor& cursor, Span feature, std::int64_t most, TfFeature& value);

}  // namespace trainctl
