// Extents to and from JSON.
#include "core/tensor/extent_json.h"

#include <utility>
#include <vector>

#include "core/base/json.h"

namespace trainctl {
namespace {

// A number from 0 to `most`.
std::optional<std::int64_t> number_within(const Json& json, std::int64_t most) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) return std::nullopt;
  return json.get<std::int64_t>();
}

}  // namespace

Json to_json(const TensorExtent& extent) {
  switch (extent.kind()) {
    case TensorExtent::Kind::whole:
      break;
    case TensorExtent::Kind::box:
      return {{"offsets", extent.offsets()}, {"sizes", extent.sizes()}};
    case TensorExtent::Kind::range:
      return {{"offset", extent.offsets()[0]}, {"count", extent.sizes()[0]}};
  }
  return nullptr;
}

std::optional<TensorExtent> extent_from_json(const Json& json, const Shape& tensor) {
  if (json.is_null()) return TensorExtent();
  if (!json.is_object()) return std::nullopt;
  const auto member = [&json](const char* name) { return json.value(name, Json()); };
  if (json.contains("offset")) {
    const auto offset = number_within(member("offset"), tensor.count());
    const auto count = number_within(member("count"), tensor.count());
    if (!offset || !count || *count > tensor.count() - *offset) return std::nullopt;
    return TensorExtent::range(tensor, *offset, *count);
  }
  const Json all_offsets = member("offsets"), all_sizes = member("sizes");
  const auto rank = static_cast<std::size_t>(tensor.rank());
  if (!all_offsets.is_array() || !all_sizes.is_array()) return std::nullopt;
  if (all_offsets.size() != rank || all_sizes.size() != rank) return std::nullopt;
  std::vector<std::int64_t> offsets, sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t most = tensor[static_cast<std::int64_t>(i)];
    const auto offset = number_within(all_offsets[i], most), size = number_within(all_sizes[i], most);
    if (!offset || !size || *size > most - *offset) return std::nullopt;
    offsets.push_back(*offset);
    sizes.push_back(*size);
  }
  return TensorExtent::box(tensor, std::move(offsets), std::move(sizes));
}

}  // namespace trainctl
