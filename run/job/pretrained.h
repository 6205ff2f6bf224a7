// Checks and loads the weights that a config's network begins with (`model.weights`).
#pragma once

#include <optional>

namespace trainctl {

struct DataInfo;
struct LoadedWeights;
struct RunSpec;

// Throws if the file cannot be read, or if the names and shapes in it do not match the network. Does nothing if the
// config names no file.
void check_pretrained(const RunSpec& spec, const DataInfo& data);

// Reads the weights; empty if the config names no file.
std::optional<LoadedWeights> load_pretrained(const RunSpec& spec, const DataInfo& data);

}  // namespace trainctl
