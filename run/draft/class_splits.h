// Finds the folders of the classes and of the splits of a data set of files.
#pragma once

#include <functional>
#include <string>

#include "run/draft/draft.h"

namespace trainctl {

// Whether a folder, or a folder below it, has files of the data set.
using HasFiles = std::function<bool(const std::string& folder)>;

// The folders of the splits, each with a folder for each class; the last two are "" if there are none.
struct ClassSplits {
  std::string training, validation, test;
};

ClassSplits class_splits(const std::string& folder, const HasFiles& has_files);
// Whether the training split has folders of classes.
bool has_class_splits(const std::string& folder, const HasFiles& has_files);

// The lines of a config's `data` section with the paths of the splits.
std::string splits_text(const DraftRequest& request, const ClassSplits& splits);

}  // namespace trainctl
