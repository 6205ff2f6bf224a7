// Writes the tensors of a network into a Hugging Face folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"

namespace trainctl {

struct NamedTensor;
struct TensorRule;

// A shard of transformers has at most this many bytes, unless a tensor alone is larger.
inline constexpr std::int64_t hugging_face_shard_bytes = 5'000'000'000;

// Writes model.safetensors; or, if there is more than one shard of `shard_bytes`, the shards
// model-00001-of-0000N.safetensors and model.safetensors.index.json. Replaces files of these names and removes the
// others among them, which would belong to another network. `weights`: float32 tensors with all names in the rules.
// `dtype`: float32 or bfloat16. Returns the number of bytes of all tensors.
std::int64_t write_hugging_face_weights(const std::string& folder, const std::vector<TensorRule>& tensors,
                                        std::span<const NamedTensor> weights, DType dtype,
                                        std::int64_t shard_bytes = hugging_face_shard_bytes);

}  // namespace trainctl
