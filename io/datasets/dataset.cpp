// Errors of data sets, and groups of data sets.
#include "io/datasets/dataset.h"

#include <algorithm>

namespace trainctl {

void data_error(const std::string& path, const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::data, Place{path}, message, remedy);
}

std::vector<const Dataset*> DatasetGroup::distinct() const {
  std::vector<const Dataset*> found;
  for (const auto* list : {&inputs, &targets}) {
    for (const auto& dataset : *list) {
      if (std::find(found.begin(), found.end(), dataset.get()) == found.end()) found.push_back(dataset.get());
    }
  }
  return found;
}

}  // namespace trainctl
