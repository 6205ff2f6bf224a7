// Samples, errors of data sets, and groups of data sets.
#include "io/datasets/dataset.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {

void data_error(const std::string& path, const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::data, SourceLocation{path}, message, remedy);
}

std::int32_t* Sample::make_int32(const Shape& array_shape) {
  shape = array_shape;
  dtype = DType::int32;
  buffer.resize(static_cast<std::size_t>(shape.count()) * sizeof(std::int32_t));
  values = buffer.data();
  return reinterpret_cast<std::int32_t*>(buffer.data());
}

Shape first_readable_shape(const Dataset& images, const std::string& path, bool skip_unreadable) {
  Sample sample;
  std::string problem;
  for (std::int64_t i = 0; i < images.size(); ++i) {
    try {
      images.read(i, sample);
      return sample.shape;
    } catch (const Error& error) {
      if (!skip_unreadable || error.kind() != ErrorKind::data) throw;
      if (problem.empty()) problem = error.what();
    }
  }
  data_error(path, format("none of its {} images can be read; the first: {}", images.size(), problem));
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
