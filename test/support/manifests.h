// Writes a manifest with the records of its own files.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"

namespace trainctl::test {

inline std::string text_of(const Manifest& manifest) {
  std::vector<std::string> records;
  for (const Manifest::File& file : manifest.files) {
    FileRecord record;
    for (const Manifest::Tensor& tensor : file.tensors) {
      record.add(tensor.name, tensor.shape, tensor.extent, tensor.xxh3);
    }
    records.push_back(record.finish(file.name, file.seal));
  }
  return to_text(manifest, records);
}

}  // namespace trainctl::test
