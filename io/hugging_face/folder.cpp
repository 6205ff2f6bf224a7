// Opens safetensors files of a folder.
#include "io/hugging_face/folder.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/datasets/arrays/float32.h"
#include "io/hugging_face/json_file.h"

namespace trainctl {
namespace {

constexpr const char* single_name = "/model.safetensors";
constexpr const char* index_name = "/model.safetensors.index.json";
constexpr std::int64_t largest_index = 100'000'000;
constexpr std::size_t max_shards = 500;  // all of them are open at the same time
constexpr const char* copy_whole = "copy the whole folder that save_pretrained wrote";

[[noreturn]] void damaged(const std::string& path, const std::string& what, const std::string& remedy = copy_whole) {
  throw Error(ErrorKind::data, SourceLocation{path}, what, remedy);
}

std::unique_ptr<SafetensorsFile> open_file(const std::string& path) {
  try {
    return std::make_unique<SafetensorsFile>(path);
  } catch (const OverflowError&) {
    damaged(path, "not a valid safetensors file: a tensor is larger than any file");
  }
}

// Whether the text is the name of a file in the same folder.
bool is_plain_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string::npos && name[0] != '.' &&
         name.find('\0') == std::string::npos;
}

// The tensors of each shard, by the index.
std::map<std::string, std::set<std::string>> read_index(const std::string& path) {
  const Json index = read_json_object(path, largest_index);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    damaged(path, "has no 'weight_map', which says for each tensor in which shard it is");
  }
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !is_plain_name(shard.get<std::string>())) {
      damaged(path,
              format("puts the tensor '{}' into {}, which is not the name of a .safetensors file in this folder",
                     tensor, json_text(shard).substr(0, 100)),
              "do not use a folder from an untrusted source; otherwise save the network again");
    }
    shards[shard.get<std::string>()].insert(tensor);
  }
  if (shards.size() > max_shards) {
    damaged(path, format("names {} shards, but at most {} are read", shards.size(), max_shards),
            "save the network again with larger shards");
  }
  return shards;
}

}  // namespace

bool is_hugging_face_folder(const std::string& path) {
  if (exists(path + "/manifest.json") || exists(path + "/checkpoints") || exists(path + "/config.yaml")) return false;
  for (const char* name : {"/config.json", single_name, index_name}) {
    if (exists(path + name)) return true;
  }
  return false;
}

HuggingFaceFolder::HuggingFaceFolder(const std::string& path) {
  const std::string index = path + index_name;
  if (exists(path + single_name)) {
    files_.push_back(open_file(path + single_name));
    for (const StoredTensor& tensor : files_[0]->header().tensors) tensors_[tensor.name] = {0, &tensor};
  } else if (exists(index)) {
    open_shards(path, index);
  } else if (exists(path + "/pytorch_model.bin") || exists(path + "/pytorch_model.bin.index.json")) {
    damaged(path, "holds its weights in pytorch_model.bin, whose format can run code when it is read",
            "save the network again with a newer version of transformers, which writes model.safetensors");
  } else {
    damaged(path, "holds no weights: neither model.safetensors nor model.safetensors.index.json");
  }
  for (const auto& [name, tensor] : tensors_) names_.push_back(name);
}

void HuggingFaceFolder::open_shards(const std::string& folder, const std::string& index) {
  const auto shards = read_index(index);
  for (const auto& [shard, expected] : shards) {
    if (!exists(folder + "/" + shard)) damaged(index, format("the shard '{}' is missing in this folder", shard));
  }
  for (const auto& [shard, expected] : shards) {
    const std::string path = folder + "/" + shard;
    files_.push_back(open_file(path));
    const std::vector<StoredTensor>& tensors = files_.back()->header().tensors;
    for (const StoredTensor& tensor : tensors) {
      if (!expected.contains(tensor.name)) {
        damaged(path, format("holds the tensor '{}', which the index does not put into this shard", tensor.name));
      }
      tensors_[tensor.name] = {files_.size() - 1, &tensor};
    }
    for (const std::string& name : expected) {
      if (!tensors_.contains(name))
        damaged(path, format("does not hold the tensor '{}', which the index puts here", name));
    }
  }
}

const StoredTensor* HuggingFaceFolder::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.tensor;
}

void HuggingFaceFolder::read(const std::string& name, float* to) const {
  const auto& [file, tensor] = tensors_.at(name);
  if (tensor->dtype == DType::float32) return files_[file]->read(*tensor, to);
  std::vector<char> bytes(static_cast<std::size_t>(tensor->bytes()));
  files_[file]->read(*tensor, bytes.data());
  to_float32(tensor->dtype, bytes.data(), tensor->shape.count(), to);
}

}  // namespace trainctl
