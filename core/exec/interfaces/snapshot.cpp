// The hash of a run's weights, and the comparison of a checkpoint's tensors with a model's.
#include "core/exec/interfaces/snapshot.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

constexpr std::size_t shown_differences = 8;

std::map<std::string_view, const NamedTensor*> by_name(std::span<const NamedTensor> tensors) {
  std::map<std::string_view, const NamedTensor*> sorted;
  for (const NamedTensor& tensor : tensors) sorted[tensor.name] = &tensor;
  return sorted;
}

}  // namespace

std::string write_class_names(const std::vector<std::string>& names) {
  return Json(names).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> read_class_names(const std::map<std::string, std::string>& facts) {
  const auto found = facts.find(class_names_fact);
  const Json json = found == facts.end() ? Json() : Json::parse(found->second, nullptr, false);
  const bool names =
      json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& j) { return j.is_string(); });
  return names ? json.get<std::vector<std::string>>() : std::vector<std::string>{};
}

std::string weights_sha256(std::span<const NamedTensor> tensors) {
  static_assert(std::endian::native == std::endian::little, "values are hashed as they lie in memory");
  Sha256 hash;
  for (const auto& [name, tensor] : by_name(tensors)) {
    require(tensor->view.dtype == DType::float32, "weights_sha256 is defined on float32");
    hash.update(name.data(), name.size());
    hash.update("", 1);
    hash.update(tensor->view.data, static_cast<std::size_t>(tensor->view.bytes()));
  }
  return hash.finish();
}

void require_same_tensors(std::string_view checkpoint, std::span<const NamedTensor> found,
                          std::span<const NamedTensor> expected) {
  const auto there = by_name(found);
  const auto here = by_name(expected);
  std::vector<std::string> differences;
  for (const auto& [name, tensor] : here) {
    const auto other = there.find(name);
    if (other == there.end()) {
      differences.push_back(format("'{}' {} is missing", name, to_string(tensor->shape)));
    } else if (other->second->shape != tensor->shape) {
      differences.push_back(
          format("'{}' is {} there, {} here", name, to_string(other->second->shape), to_string(tensor->shape)));
    }
  }
  for (const auto& [name, tensor] : there) {
    if (!here.contains(name)) differences.push_back(format("'{}' {} is not here", name, to_string(tensor->shape)));
  }
  if (differences.empty()) return;

  std::string list;
  for (std::size_t i = 0; i < std::min(differences.size(), shown_differences); ++i) {
    list += (i ? ", " : "") + differences[i];
  }
  if (differences.size() > shown_differences) list += format(", and {} more", differences.size() - shown_differences);
  throw Error(ErrorKind::config, Place{std::string(checkpoint)}, "the checkpoint is of another model: " + list,
              "resume with the config that wrote it, or start anew (--resume never)");
}

}  // namespace trainctl
