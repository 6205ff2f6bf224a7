// Converts tensors to the layouts of a family, and writes them shard by shard.
#include "io/hugging_face/writer.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/safetensors.h"
#include "io/datasets/arrays/float32.h"
#include "io/hugging_face/tensor_rule.h"

namespace trainctl {
namespace {

using Weights = std::map<std::string_view, const NamedTensor*>;

// A tensor in the layout of the folder.
struct Converted {
  std::vector<float> values;
  std::vector<std::uint16_t> rounded;
};

Converted convert(const TensorRule& rule, const Weights& weights, DType dtype) {
  std::vector<const float*> parts;
  for (const std::string& part : rule.parts) parts.push_back(weights.at(part)->view.as<const float>());
  Converted tensor{std::vector<float>(static_cast<std::size_t>(rule.shape.count())), {}};
  rule.to_stored(parts, tensor.values.data());
  if (dtype == DType::bfloat16) {
    tensor.rounded.resize(tensor.values.size());
    std::transform(tensor.values.begin(), tensor.values.end(), tensor.rounded.begin(), to_bfloat16);
    tensor.values = {};
  }
  return tensor;
}

void write_shard(const std::string& path, std::span<const TensorRule> rules, const Weights& weights, DType dtype) {
  std::vector<Converted> memory;
  std::vector<NamedTensor> tensors;
  std::int64_t bytes = 0;
  for (const TensorRule& rule : rules) {
    Converted& tensor = memory.emplace_back(convert(rule, weights, dtype));
    void* values = dtype == DType::bfloat16 ? static_cast<void*>(tensor.rounded.data()) : tensor.values.data();
    tensors.push_back({rule.stored, rule.shape, {values, dtype, rule.shape.count()}});
    bytes += tensors.back().view.bytes();
  }
  write_file(path, bytes, [&](OutputFile& file) { write_safetensors(file, tensors, {{"format", "pt"}}); });
}

// Removes files of weights that were not written now: transformers would read them.
void remove_others(const std::string& folder, const std::vector<std::string>& written) {
  for (const FolderEntry& entry : list_folder(folder)) {
    const bool weights = entry.name == "model.safetensors" || entry.name == "model.safetensors.index.json" ||
                         fnmatch("model-[0-9]*-of-[0-9]*.safetensors", entry.name.c_str(), 0) == 0;
    if (weights && std::find(written.begin(), written.end(), entry.name) == written.end()) {
      std::filesystem::remove(folder + "/" + entry.name);
    }
  }
}

}  // namespace

std::int64_t write_hugging_face_weights(const std::string& folder, const std::vector<TensorRule>& tensors,
                                        std::span<const NamedTensor> weights, DType dtype, std::int64_t shard_bytes) {
  const Weights by_name = trainctl::by_name(weights);
  std::vector<std::size_t> begins;
  std::int64_t total = 0, in_shard = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = tensors[i].shape.count() * size_of(dtype);
    if (i == 0 || in_shard + bytes > shard_bytes) {
      begins.push_back(i);
      in_shard = 0;
    }
    in_shard += bytes;
    total += bytes;
  }
  std::vector<std::string> written;
  Json map = Json::object();
  for (std::size_t s = 0; s < begins.size(); ++s) {
    const std::size_t end = s + 1 < begins.size() ? begins[s + 1] : tensors.size();
    const std::span<const TensorRule> rules(tensors.begin() + static_cast<std::ptrdiff_t>(begins[s]),
                                            tensors.begin() + static_cast<std::ptrdiff_t>(end));
    written.push_back(begins.size() == 1 ? "model.safetensors"
                                         : format("model-{:05}-of-{:05}.safetensors", s + 1, begins.size()));
    write_shard(folder + "/" + written.back(), rules, by_name, dtype);
    for (const TensorRule& rule : rules) map[rule.stored] = written.back();
  }
  if (begins.size() > 1) {
    written.emplace_back("model.safetensors.index.json");
    const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
    write_file(folder + "/" + written.back(), json_text(index, 2) + "\n");
  }
  remove_others(folder, written);
  return total;
}

}  // namespace trainctl
