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
#include "io/hugging_face/tensor_rule.h"

namespace trainctl {

class ConfigJson;
struct Graph;

// What a config.json describes.
struct HuggingFaceNetwork {
  std::string model_type;                // "llama"
  std::string preset;                    // the preset that computes the same
  Node with;                             // the preset's parameters
  std::vector<std::string> inputs = {};  // the names of the model's inputs, if there are several
  std::string until = {};                // the last layer of the preset that the network has; empty: all layers
  // The shape of a sample: the largest number of positions of a text, or [height, width, channels] of images.
  Shape sample;
  std::vector<TensorRule> tensors;  // all tensors of the preset
  std::string prefix;               // "model.": names begin with it, except if the network was saved without its head
  std::vector<std::string> other_heads = {};  // patterns of the names of tensors after `until`
  // Ends of names, and the ends that they have in older files.
  std::vector<std::pair<std::string, std::string>> older_names = {};
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

// All families.
const std::vector<HuggingFaceFamily>& hugging_face_families();

// Reads the content of a config.json, `path` in messages. Throws ConfigError with every key that no preset can express,
// every wrong value, and an unknown family.
HuggingFaceNetwork read_hugging_face_config(const Json& config, const std::string& path);
// Reads the config.json of a folder. Throws also Error{data} if the file cannot be read.
HuggingFaceNetwork read_hugging_face_config(const std::string& folder);

}  // namespace trainctl
