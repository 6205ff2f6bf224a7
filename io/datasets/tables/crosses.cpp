// Hashes combinations of fields.
#include "io/datasets/tables/crosses.h"

#include <algorithm>
#include <set>

#include "core/spec/reader.h"
#include "core/spec/units.h"
#include "core/spec/values.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/farm_hash.h"

namespace trainctl {
namespace {

constexpr std::uint64_t first_hash = 0xdecafcaffe;  // TensorFlow's key of crosses

std::uint64_t feature_of(const CrossedColumn& column, std::string_view field) {
  if (!column.boundaries.empty()) {
    if (const auto number = number_in(field)) return static_cast<std::uint64_t>(bin_of(*number, column.boundaries));
  } else if (!column.is_word) {
    if (const auto number = parse_integer(std::string(field))) return static_cast<std::uint64_t>(*number);
  }
  return farm_hash(field);
}

}  // namespace

Keys<Cross> Cross::keys() {
  return Keys<Cross>("crosses", "The combination of the fields of several columns, as a column of its own.")
      .required("columns", &Cross::columns, "The columns of the table, at least two.")
      .required("num_bins", &Cross::num_bins, "The number of bins into which the combinations are hashed.",
                between(1, 1 << 24))
      .check([](const Cross& cross, const Node& node, Reader& reader) {
        const std::set<std::string> different(cross.columns.begin(), cross.columns.end());
        if (different.size() < std::max<std::size_t>(cross.columns.size(), 2)) {
          reader.error(node.location, "a cross needs at least two columns, each of them once");
        }
      });
}

std::int64_t cross_bin(const std::vector<CrossedColumn>& columns, std::span<const std::string_view> fields,
                       std::int64_t bins) {
  std::uint64_t hash = first_hash;
  for (const CrossedColumn& column : columns)
    hash = combined_hash(hash, feature_of(column, trimmed(fields[column.index])));
  return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(bins));
}

}  // namespace trainctl
