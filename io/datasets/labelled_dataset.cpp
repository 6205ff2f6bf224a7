// Finds files, numbers their classes and describes them.
#include "io/datasets/labelled_dataset.h"

#include <utility>

#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/class_numbers.h"
#include "io/datasets/fingerprint.h"

namespace trainctl {

LabelledDataset::LabelledDataset(const std::vector<std::string>& paths, const FileSearch& search,
                                 const DeclaredInfo& declared)
    : skip_unreadable_(declared.skip_unreadable), predicts_(search.single) {
  LabelledFiles found = find_labelled_files(paths, search);
  files_ = std::move(found.files);
  in_tables_ = found.in_tables;
  info_.warning = std::move(found.left_out);
  if (predicts_) info_.target = {0};
  info_.dtype = DType::float32;
}

void LabelledDataset::number_labels(const std::string& path, const DeclaredInfo& declared) {
  ClassNumbers numbers = number_classes({size(), [this](std::int64_t i) { return file(i).label; },
                                         [this](std::int64_t i) { return file(i).place; }, in_tables_},
                                        path, declared);
  info_.class_names = std::move(numbers.names);
  info_.classes = numbers.classes;
  labels_ = std::move(numbers.labels);
}

void LabelledDataset::set_fingerprint(const char* noun, const std::string& described) {
  const auto path_of = [this](std::int64_t i) { return name_of(i); };
  info_.fingerprint = format("{} {} {:016x} {:016x}", size(), noun, xxh3(described.data(), described.size()),
                             content_hash(FileContents{size(), path_of, skip_unreadable_}));
}

}  // namespace trainctl
