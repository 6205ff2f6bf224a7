// Reads tf.train.Example messages: named lists of bytes, floats or whole numbers, encoded as protocol buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/cursor.h"

namespace trainctl {

// The range [begin, end) of a cursor's bytes.
struct Span {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
};

// The values of a feature: the list that `kind` names; the other two lists are empty.
struct TfFeature {
  enum class Kind { none, bytes, floats, integers };

  Kind kind = Kind::none;
  std::vector<Span> bytes;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::int64_t count() const { return std::ssize(bytes) + std::ssize(floats) + std::ssize(integers); }
};

// Calls visit(name, span) for every feature of an Example; `span` is the range of its Feature message, for
// read_feature(). Features with names of more than 1024 bytes are skipped. Returns false if the bytes are not an
// Example.
bool for_each_feature(Cursor& cursor, Span example, const std::function<void(std::string_view, Span)>& visit);

// Reads a feature of at most `max_values` values. Returns false if the bytes are not a Feature, or if it has more
// values.
bool read_feature(Cursor& cursor, Span feature, std::int64_t max_values, TfFeature& value);

}  // namespace trainctl
