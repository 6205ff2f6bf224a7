// Crosses of columns: the combination of the fields of several columns, which is hashed into bins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/keys.h"
#include "io/datasets/tables/bins.h"

namespace trainctl {

// A further column of a table, Keras' HashedCrossing.
struct Cross {
  std::vector<std::string> columns;
  std::int64_t num_bins = 0;

  static Keys<Cross> keys();
};

// How a cross reads the field of a column: as a word if `is_word`; as the number of a bin if there are boundaries;
// otherwise as a whole number if it is one, else as a word.
struct CrossedColumn {
  std::size_t index = 0;  // of the column in the table
  bool is_word = false;
  std::vector<float> boundaries = {};
};

// The bin of a line's fields, from 0 to `bins` - 1: that of tf.sparse.cross_hashed, which reads words and whole
// numbers. A field that should lie in a bin but is no number is read as a word.
std::int64_t cross_bin(const std::vector<CrossedColumn>& columns, std::span<const std::string_view> fields,
                       std::int64_t bins);

}  // namespace trainctl
