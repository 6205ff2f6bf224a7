// Names and words of data that a run keeps (classes, columns, words of columns) must be UTF-8: configs, checkpoints and
// reports are, and a run could not read its own again.
#pragma once

#include <string>
#include <string_view>

#include "io/datasets/dataset.h"

namespace trainctl {

// Throws Error{data} with a command that converts, if a name in the path of a file or folder is not UTF-8.
void require_utf8_path(const std::string& path);

// The same for text that a file holds at the place `where`, such as "line 3, column 'kind'".
void require_utf8_text(const std::string& file, std::string_view where, std::string_view text);

// The same for all names that the info of a data set hold, wherever they came from; `path` is where the data set lies.
void require_utf8_info(const std::string& path, const DatasetInfo& info);

}  // namespace trainctl
