// `model.weights`: the file that the weights of a network come from when a run begins.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/layers/model/name_rules.h"
#include "core/layers/model/reference.h"

namespace trainctl {

struct WeightsOptions {
  Located<Path> file;
  std::vector<Reference> skip;  // patterns of names
  bool allow_missing = false;
  // For each program: rules that turn paths of layers into the program's names (core/layers/model/name_rules.h). A
  // preset has its own rules.
  std::map<std::string, std::vector<Reference>> names;

  static Keys<WeightsOptions> keys();
};

// The rules of one program, parsed; they were checked when the config was read.
std::vector<NameRule> rules_of(const std::vector<Reference>& texts);

}  // namespace trainctl
