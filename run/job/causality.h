// Finds language models that see the tokens that they learn to predict.
#pragma once

#include <string>

namespace trainctl {

struct DataInfo;
struct RunSpec;

// A warning if the targets are the next tokens and a layer may read later positions, which are these targets; empty if
// no layer does.
std::string causality_warning(const RunSpec& spec, const DataInfo& data);

}  // namespace trainctl
