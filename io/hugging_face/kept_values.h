// The values of a config.json that no tensor and no op of a network holds, and that an export takes from the folder of
// the network's first weights.
#pragma once

#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

// Puts values of the config.json in `folder` into `config`, the config.json of an export: the number of positions, if
// the network can have any number of them, and the ids of special tokens that `config` has as null. Changes nothing if
// the folder has no config.json of a network with the same sizes.
void keep_hugging_face_values(const std::string& folder, Json& config);

}  // namespace trainctl
