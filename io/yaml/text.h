// Reading the text of a config file: bounded, and with every error of the system told.
#pragma once

#include <optional>
#include <string>

#include "core/spec/reader.h"

namespace trainctl {

// Kinds of file that may be read: included files must be regular, since others block, never end or change.
enum class FileKind { regular, any };

// The file's bytes. Reported at `place`, `what` being its subject ("the config"): a file that cannot be opened or read,
// is a folder or of a wrong kind, or is larger than ConfigLimits::bytes.
std::optional<std::string> read_text(const std::string& file, FileKind kind, const SourceLocation& location,
                                     const std::string& what, Reader& reader);

}  // namespace trainctl
