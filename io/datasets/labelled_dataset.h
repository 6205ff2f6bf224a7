// The common part of data sets of files with a class each: the files, their classes and the fingerprint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/datasets/labelled_files.h"
#include "io/datasets/options.h"

namespace trainctl {

// Derived classes set the shape of the samples and read them.
class LabelledDataset : public Dataset {
 public:
  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(files_); }
  bool holds_files() const override { return predicts_; }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t index) const override {
    return labels_.empty() ? 0 : labels_[static_cast<std::size_t>(index)];
  }
  std::string name_of(std::int64_t index) const override { return file(index).path; }
  std::string target_name_of(std::int64_t index) const override { return file(index).place; }

 protected:
  // Finds the files at paths. Samples have no targets if `search.single` permits a path of a single sample.
  LabelledDataset(const std::vector<std::string>& paths, const FileSearch& search, const DeclaredInfo& declared);

  // Numbers the classes, as number_classes() does.
  void number_labels(const std::string& path, const DeclaredInfo& declared);
  // Sets the fingerprint of the files' contents and of `described`, the properties of the samples. `noun`: "sounds".
  void set_fingerprint(const char* noun, const std::string& described);

  const LabelledFiles::File& file(std::int64_t index) const { return files_[static_cast<std::size_t>(index)]; }

  DatasetInfo info_;
  std::vector<LabelledFiles::File> files_;
  std::vector<std::int32_t> labels_;  // empty if samples have no classes
  bool in_tables_;                    // whether all labels are fields of tables
  bool skip_unreadable_;
  bool predicts_;  // whether samples have no targets
};

// The options of such a data set. `Files` is constructed from paths, `Reading`, DeclaredInfo and whether it predicts.
// Reading::dataset is the name of the data set in configs.
template <class Files, class Reading>
struct LabelledOptions final : DatasetOptions, Reading {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return std::make_shared<Files>(paths_of({where}, Reading::dataset), *this, declared, false);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind, const DeclaredGroup& declared,
                           std::uint64_t) const override {
    const auto dataset =
        std::make_shared<Files>(paths_of(pieces, Reading::dataset), *this, declared_of_both(declared), false);
    return {{dataset}, {dataset}};
  }
  std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                             const DeclaredInfo& declared) const override {
    return std::make_shared<Files>(paths, *this, declared, true);
  }
};

}  // namespace trainctl
