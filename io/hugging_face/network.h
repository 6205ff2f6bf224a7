// The networks of Hugging Face's library transformers that presets of trainctl compute: their config.json, and the
// names and layouts of their tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/base/json_fwd.h"
#include "core/tensor/shape.h"

namespace trainctl {

class ConfigJson;
struct Graph;

// A tensor of a folder, and the tensors of the preset's network that it holds.
struct TensorRule {
  std::string stored;              // its name in the folder: "model.layers.0.mlp.up_proj.weight"
  Shape shape;                     // its shape in the folder
  bool transposed = false;         // whether a matrix is stored as (outputs, inputs), and is (inputs, outputs) here
  std::vector<std::string> parts;  // names in the network; several have equal shares of the columns, in this order

  // The shape of a part in the network.
  Shape part_shape() const;
};

// What a config.json describes.
struct HuggingFaceNetwork {
  std::string model_type;           // "llama"
  std::string preset;               // the preset that computes the same
  Node with;                        // the preset's parameters
  std::int64_t positions = 0;       // the largest number of positions
  std::vector<TensorRule> tensors;  // all tensors
  std::string prefix;               // "model.": names begin with it, except if the network was saved without its head
  std::vector<std::string> buffers = {};  // patterns of the names of tensors that older versions saved but do not read
  // A tensor that may be stored although it equals another one, and that other tensor: head and table of tied weights.
  std::optional<std::pair<std::string, std::string>> copy = {};
};

// One kind of network.
struct HuggingFaceFamily {
  std::vector<std::string> model_types;  // values of the key model_type
  HuggingFaceNetwork (*read)(const std::string& model_type, ConfigJson& config);
  // The config.json of a network, which is a graph for training, read from its ops and parameters; no value if it does
  // not have the parameters of this family. The result must be compared with the preset's network.
  std::optional<Json> (*describe)(const Graph& graph);
};

const std::vector<HuggingFaceFamily>& hugging_face_families();

// Reads the content of a config.json, `path` in messages. Throws ConfigError with every key that no preset can express,
// every wrong value, and an unknown family.
HuggingFaceNetwork read_hugging_face_config(const Json& config, const std::string& path);
// Reads the config.json of a folder. Throws also Error{data} if the file cannot be read.
HuggingFaceNetwork read_hugging_face_config(const std::string& folder);

// Writes the matrix `from` [rows, columns] to `to` as [columns, rows].
void transpose(std::int64_t rows, std::int64_t columns, const float* from, float* to);

}  // namespace trainctl
