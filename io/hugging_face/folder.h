// Opens the safetensors files of a Hugging Face folder: model.safetensors, or several shards that
// model.safetensors.index.json lists.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/safetensors.h"

namespace trainctl {

// Whether a folder is one that `save_pretrained` wrote, and not a run or a checkpoint of trainctl.
bool is_hugging_face_folder(const std::string& path);

// The tensors of a folder. The constructor reads headers only. It throws Error{data} if a shard is missing or damaged,
// if the index names a file outside of the folder, or if index and shards do not have the same tensors.
class HuggingFaceFolder {
 public:
  explicit HuggingFaceFolder(const std::string& path);

  // Names of all tensors in bytewise order.
  const std::vector<std::string>& names() const { return names_; }
  // The tensor of this name; nullptr if there is none.
  const StoredTensor* find(const std::string& name) const;
  // Reads a tensor of floating-point numbers as float32.
  void read(const std::string& name, float* to) const;

 private:
  struct FileTensor {
    std::size_t file;
    const StoredTensor* tensor;
  };
  void open_shards(const std::string& folder, const std::string& index);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, FileTensor> tensors_;  // key: name of the tensor
  std::vector<std::string> names_;
};

}  // namespace trainctl
