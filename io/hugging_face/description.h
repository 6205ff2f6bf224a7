// Describes a network of trainctl as a network of Hugging Face's library transformers.
#pragma once

#include <memory>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/layers/model/model_input.h"
#include "io/hugging_face/network.h"

namespace trainctl {

struct Graph;
struct ModelOptions;

struct HuggingFaceDescription {
  // The content of config.json, without the numbers of special tokens and the dtype; not null.
  std::shared_ptr<Json> config;
  HuggingFaceNetwork network;  // what this config.json describes
};

// Returns the network of the preset and the parameters that a config.json asks for.
ModelOptions preset_model(const HuggingFaceNetwork& network);

// Finds the family of a network by its parameters, and compares every op with the preset's network for the same
// config.json. Throws Error{config} if the network is of no family, or differs.
HuggingFaceDescription describe_for_hugging_face(const ModelOptions& model, const std::vector<ModelInput>& inputs);

}  // namespace trainctl
