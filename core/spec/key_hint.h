// What the message about an unknown key suggests.
#pragma once

#include <string>
#include <vector>

#include "core/spec/keys.h"

namespace trainctl {

struct KeyHint {
  std::string text;        // "; did you mean 'learning_rate'?"; empty if there is none
  std::string meant = {};  // the key of the section that is probably meant; empty if there is none
};

// The hint for an unknown key of a section. `names`: the keys that its map may have. A key of a map inside the section
// is known, too, such as `learning_rate`, which belongs to the optimizer.
KeyHint key_hint(const std::string& key, const Section& section, const std::vector<std::string>& names);

}  // namespace trainctl
