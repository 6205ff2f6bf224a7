// The weights that a config's network begins with (`model.weights`).
#pragma once

#include <optional>

namespace trainctl {

struct DataInfo;
struct LoadedWeights;
struct RunSpec;

// Throws what is wrong with the file and with the names and shapes in it; nothing where the config states no file.
void check_pretrained(const RunSpec& spec, const DataInfo& data);

// The weights, read; nothing where the config states no file.
std::optional<LoadedWeights> load_pretrained(const RunSpec& spec, const DataInfo& data);

}  // namespace trainctl
