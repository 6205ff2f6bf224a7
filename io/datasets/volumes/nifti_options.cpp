// The data set of NIfTI volumes with a class or a value each.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/format.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/labelled_dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/volumes/nifti.h"

namespace trainctl {
namespace {

struct VolumeColumns {
  static constexpr const char* dataset = "nifti";
  std::string volume_column = "volume", class_column = "label";
  std::optional<std::string> value_column;
};

FileListing list_volumes(const std::string& folder) {
  FileListing listing;
  listing.files = files_below(folder, is_nifti_name);
  if (listing.files.empty()) {
    data_error(folder, "has no .nii and no .nii.gz files", "remove the folder, or put volumes into it");
  }
  return listing;
}

FileSearch search_of(const VolumeColumns& columns, bool has_labels, bool predicts) {
  const NamedColumn label = columns.value_column ? NamedColumn{*columns.value_column, "value_column"}
                                                 : NamedColumn{columns.class_column, "class_column"};
  return {list_volumes, {columns.volume_column, "volume_column"}, label, has_labels, predicts};
}

class VolumeFiles final : public LabelledDataset {
 public:
  VolumeFiles(const std::vector<std::string>& paths, const VolumeColumns& columns, const DeclaredInfo& declared,
              bool predicts)
      : LabelledDataset(paths, search_of(columns, !predicts && !declared.targets_may_miss(), predicts), declared) {
    const bool has_targets = !predicts && !declared.targets_may_miss();
    if (has_targets && columns.value_column) read_target_values(paths[0]);
    if (has_targets && !columns.value_column) number_labels(paths[0], declared);
    if (declared.training) expected_ = declared.training->sample;
    expected_ = info_.sample = first_readable_shape(*this, paths[0], skip_unreadable_);
    std::string described = to_string(info_.sample);
    for (const LabelledFiles::File& of : files_) described += "\n" + of.label;
    set_fingerprint("volumes", described);
  }

  void read(std::int64_t index, Sample& sample) const override {
    with_remedy(skip_unreadable_, "repair or remove it, or set `on_error: skip`", [&] {
      const NiftiVolume volume = read_nifti(file(index).path);
      sample.shape = volume.shape();
      if (expected_ && !(sample.shape == *expected_)) {
        data_error(
            file(index).path,
            format("is a volume of {}, but the others are of {}", to_string(sample.shape), to_string(*expected_)),
            "all volumes need the same size");
      }
      sample.buffer.resize(static_cast<std::size_t>(sample.shape.count()) * sizeof(float));
      volume.read(reinterpret_cast<float*>(sample.buffer.data()));
    });
    sample.dtype = DType::float32;
    sample.values = sample.buffer.data();
    if (!values_.empty()) sample.target = &values_[static_cast<std::size_t>(index)];
  }

 private:
  void read_target_values(const std::string& path) {
    if (!in_tables_) data_error(path, "is a folder, but `value_column` is a column of a table", "give a .csv file");
    info_.target = {1};
    for (const LabelledFiles::File& of : files_) {
      const std::optional<float> value = number_in(of.label);
      if (!value) {
        data_error(of.place,
                   format("the value '{}' is {}", of.label.substr(0, 40),
                          exceeds_float32(of.label) ? beyond_float32 : "not a number"),
                   "correct the line");
      }
      values_.push_back(*value);
    }
  }

  std::vector<float> values_;      // targets that are values
  std::optional<Shape> expected_;  // of all volumes
};

using NiftiOptions = LabelledOptions<VolumeFiles, VolumeColumns>;

}  // namespace

Section nifti_choice() {
  return Keys<NiftiOptions>(
             "nifti",
             "Volumes in NIfTI-1 files (.nii, .nii.gz) with a class or a value each. A sample has the shape [depth, "
             "height, width, channels], which are the file's dimensions 3, 2, 1 and 4, with values that are scaled as "
             "the "
             "header states. All volumes need the same size.")
      .key("path", &NiftiOptions::path,
           "A folder that holds a folder of volumes for each class, or a .csv file with a column of volumes, relative "
           "to "
           "its folder, and a column of classes or values. A list of these is one data set.")
      .key("volume_column", &NiftiOptions::volume_column, "The column of the volumes in a .csv file.")
      .key("class_column", &NiftiOptions::class_column,
           "The column of the class in a .csv file: a number from 0, or a name. Names are numbered in bytewise order.")
      .key("value_column", &NiftiOptions::value_column,
           "The column of a number in a .csv file, which is the target instead of a class.");
}

}  // namespace trainctl
