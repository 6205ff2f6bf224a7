// The files that come with trainctl: presets and data, in the source tree or where it was installed.
#pragma once

#include <string>

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// The folder configs/ that belongs to this program: share/trainctl/configs of the prefix it was installed in, or that
// of the source tree it was built in. Throws Error{internal} where there is none.
std::string shipped_configs();

// The document of a preset: the file of this name in configs/models/, or a path (with a '/' or ending in .yaml),
// relative to the node's base_directory. Reports a name that is not there, and then gives null.
Node load_preset(const Node& preset, Reader& reader);

}  // namespace trainctl
