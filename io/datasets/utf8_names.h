// Checks that the names and words that a run keeps of its data (classes, columns, words in columns) are UTF-8. Configs,
// checkpoints and reports are UTF-8 files, which a run could not read again if they held other bytes.
#pragma once

#include <string>
#include <string_view>

#include "io/datasets/dataset.h"

namespace trainctl {

// Throws Error{data} with a command that converts the names if a name in the path of a file or folder is not UTF-8.
void require_utf8_path(const std::string& path);

// Throws Error{data} if `text` is not UTF-8. `where` is its location in the file, such as "line 3, column 'kind'".
void require_utf8_text(const std::string& file, std::string_view where, std::string_view text);

// Throws Error{data} if one of the names in the info of a data set is not UTF-8; `path` is the path of the data set.
void require_utf8_info(const std::string& path, const DatasetInfo& info);

}  // namespace trainctl
