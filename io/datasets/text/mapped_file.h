// Maps files of tokens into memory.
#pragma once

#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// Maps a whole file into memory, for reading. Processes that map the same file share its pages, and nothing is read
// before it is used. Token files are written once and then never change; a file that another program makes shorter
// while it is mapped ends the process. Throws Error{data} if the file is missing, empty, not a regular file or not
// readable.
Bytes map_file(const std::string& path);

}  // namespace trainctl
