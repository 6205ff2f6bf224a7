// Writes the configs of text classifiers, also for the texts of a table.
#pragma once

#include <string>
#include <vector>

#include "run/draft/draft.h"

namespace trainctl {

// The texts for training, validation and test: files or folders; the last two are "" if there are none.
struct TextSplits {
  std::string training, validation, test;
};

// The keys of the text and of its class in a line of JSON, or their columns in a table; no class if none is known.
struct TextKeys {
  std::string text, class_name;
  std::vector<std::string> left_out = {};  // the other keys of the first line of JSON
};

// Returns the config of a classifier of texts. Without keys, the texts of each class are in a folder. Throws
// Error{data} if the texts cannot be read, or if they have fewer than two classes.
Draft draft_text_classifier(const DraftRequest& request, const TextSplits& splits, const TextKeys& keys);

}  // namespace trainctl
