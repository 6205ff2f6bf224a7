// Converts extents to and from JSON.
#include "core/tensor/extent_json.h"

#include <utility>
#include <vector>

#include "core/base/json.h"

namespace trainctl {
namespace {

// A number from 0 to `limit`; empty for other values.
std::optional<std::int64_t> number_within(const Json& json, std::int64_t limit) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > static_cast<std::uint64_t>(limit)) return std::nullopt;
  return json.get<std::int64_t>();
}

Json range_json(std::int64_t offset, std::int64_t count) { return {{"offset", offset}, {"count", count}}; }

// A range of the elements of `outer`.
std::optional<TensorExtent> range_from_json(const Json& json, const Shape& tensor, const TensorExtent& outer) {
  if (!json.is_object()) return std::nullopt;
  const std::int64_t elements = outer.count(tensor);
  const auto offset = number_within(json.value("offset", Json()), elements);
  const auto count = number_within(json.value("count", Json()), elements);
  if (!offset || !count || *count > elements - *offset) return std::nullopt;
  return TensorExtent::range(tensor, outer, *offset, *count);
}

}  // namespace

Json to_json(const TensorExtent& extent) {
  if (extent.is_whole()) return nullptr;
  if (extent.kind() == TensorExtent::Kind::range) return range_json(extent.offsets()[0], extent.sizes()[0]);
  Json json = {{"offsets", extent.offsets()}, {"sizes", extent.sizes()}};
  if (extent.in_box()) json["range"] = range_json(extent.in_box()->first, extent.in_box()->count);
  return json;
}

std::optional<TensorExtent> extent_from_json(const Json& json, const Shape& tensor) {
  if (json.is_null()) return TensorExtent();
  if (!json.is_object()) return std::nullopt;
  const auto member = [&json](const char* name) { return json.value(name, Json()); };
  if (json.contains("offset")) return range_from_json(json, tensor, TensorExtent());
  const Json all_offsets = member("offsets"), all_sizes = member("sizes");
  const auto rank = static_cast<std::size_t>(tensor.rank());
  if (!all_offsets.is_array() || !all_sizes.is_array()) return std::nullopt;
  if (all_offsets.size() != rank || all_sizes.size() != rank) return std::nullopt;
  std::vector<std::int64_t> offsets, sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t limit = tensor[static_cast<std::int64_t>(i)];
    const auto offset = number_within(all_offsets[i], limit), size = number_within(all_sizes[i], limit);
    if (!offset || !size || *size > limit - *offset) return std::nullopt;
    offsets.push_back(*offset);
    sizes.push_back(*size);
  }
  const TensorExtent box = TensorExtent::box(tensor, std::move(offsets), std::move(sizes));
  return json.contains("range") ? range_from_json(member("range"), tensor, box) : box;
}

}  // namespace trainctl
