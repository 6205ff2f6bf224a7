// Checks and loads the weights that a config's network begins with (`model.weights`).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "io/checkpoint/load.h"

namespace trainctl {

struct ModelInput;

struct DataInfo;
struct LoadedWeights;
struct RunSpec;

// Throws if the file cannot be read, or if the names and shapes in it do not match the network. Does nothing if the
// config names no file.
void check_pretrained(const RunSpec& spec, const DataInfo& data);

// Reads the weights; empty if the config names no file.
std::optional<LoadedWeights> load_pretrained(const RunSpec& spec, const DataInfo& data);

// The weights of a network, as a checkpoint.
struct NetworkWeights {
  LoadedCheckpoint checkpoint;
  std::vector<std::unique_ptr<float[]>> memory = {};  // of the checkpoint's tensors, unless it has its own
};

// Reads the weights of a network that is used without training, as a checkpoint of step 0; the config must name a file.
// Throws as load_pretrained(), and Error{config} that names the layers without weights in the file.
NetworkWeights load_untrained(const RunSpec& spec, const std::vector<ModelInput>& inputs);

// As above. The metadata of the checkpoint is what a run would keep of the data: how the model's inputs are read, and
// the names of classes. Data that is not here is taken as the config describes it. Throws the errors of Data().
NetworkWeights load_untrained(const RunSpec& spec);

}  // namespace trainctl
