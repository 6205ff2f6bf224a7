// Computes the hash of a run's weights, and writes and reads the metadata of a snapshot.
#include "core/exec/interfaces/snapshot.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/base/json.h"

namespace trainctl {

std::map<std::string_view, const NamedTensor*> by_name(std::span<const NamedTensor> tensors) {
  std::map<std::string_view, const NamedTensor*> sorted;
  for (const NamedTensor& tensor : tensors) sorted[tensor.name] = &tensor;
  return sorted;
}

std::string write_class_names(const std::vector<std::string>& names) { return json_text(Json(names)); }

std::vector<std::string> read_class_names(const SnapshotMetadata& metadata) {
  const auto found = metadata.find(class_names_key);
  const Json json = found == metadata.end() ? Json() : try_parse_json(found->second);
  const bool names =
      json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& j) { return j.is_string(); });
  return names ? json.get<std::vector<std::string>>() : std::vector<std::string>{};
}

void WeightsHash::add(std::string_view name, const View& values) {
  static_assert(std::endian::native == std::endian::little, "values are hashed in their memory layout");
  require(values.dtype == DType::float32, "weights_sha256 is defined on float32");
  hash_.update(name.data(), name.size());
  hash_.update("", 1);
  hash_.update(values.data, static_cast<std::size_t>(values.bytes()));
}

std::string weights_sha256(std::span<const NamedTensor> tensors) {
  WeightsHash hash;
  for (const auto& [name, tensor] : by_name(tensors)) {
    require(tensor->extent.is_whole(), "weights_sha256 is defined on whole tensors");
    hash.add(name, tensor->view);
  }
  return hash.finish();
}

}  // namespace trainctl
