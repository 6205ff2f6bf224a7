// Reads the text of a config file with a limit for its size, and reports all system errors.
#pragma once

#include <optional>
#include <string>

#include "core/spec/reader.h"

namespace trainctl {

// Kinds of files that may be read. Included files must be regular, since other files may block, be endless or change.
enum class FileKind { regular, any };

// Returns the file's bytes. Reports an error at `location` if the file cannot be opened or read, is a folder or of a
// wrong kind, or is larger than ConfigLimits::bytes. `what` is the subject of the error text ("the config").
std::optional<std::string> read_text(const std::string& file, FileKind kind, const SourceLocation& location,
                                     const std::string& what, Reader& reader);

}  // namespace trainctl
