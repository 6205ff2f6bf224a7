// The data set of NIfTI volumes with a class or a value each.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/class_numbers.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/labelled_files.h"
#include "io/datasets/options.h"
#include "io/datasets/volumes/nifti.h"

namespace trainctl {
namespace {

struct VolumeColumns {
  std::string volume_column = "volume", class_column = "label";
  std::optional<std::string> value_column;
};

void add_volumes(const std::string& folder, const std::string& below, std::vector<std::string>& files) {
  for (const FolderEntry& entry : list_folder(folder)) {
    if (is_system_name(entry.name)) continue;
    if (entry.type == FileType::folder) {
      add_volumes(folder + "/" + entry.name, below + entry.name + "/", files);
    } else if (entry.name.ends_with(".nii") || entry.name.ends_with(".nii.gz")) {
      files.push_back(below + entry.name);
    }
  }
}

FileListing list_volumes(const std::string& folder) {
  FileListing listing;
  add_volumes(folder, "", listing.files);
  std::sort(listing.files.begin(), listing.files.end());
  if (listing.files.empty()) {
    data_error(folder, "has no .nii and no .nii.gz files", "remove the folder, or put volumes into it");
  }
  return listing;
}

class VolumeFiles final : public Dataset {
 public:
  // `predicts`: samples have no targets.
  VolumeFiles(const std::vector<std::string>& paths, const VolumeColumns& columns, const DeclaredInfo& declared,
              bool predicts)
      : skip_unreadable_(declared.skip_unreadable), predicts_(predicts) {
    const bool labels = !predicts && !declared.targets_may_miss();
    FileSearch search;
    search.list = list_volumes;
    search.file = {columns.volume_column, "volume_column"};
    search.label = {columns.class_column, "class_column"};
    if (columns.value_column) search.label = {*columns.value_column, "value_column"};
    search.has_labels = labels;
    search.single = predicts;
    LabelledFiles found = find_labelled_files(paths, search);
    files_ = std::move(found.files);
    info_.warning = std::move(found.left_out);
    if (labels && columns.value_column) {
      read_target_values(found.in_tables, paths[0]);
    } else if (labels) {
      ClassNumbers numbers = number_classes({size(), [this](std::int64_t i) { return file(i).label; },
                                             [this](std::int64_t i) { return file(i).place; }, found.in_tables},
                                            paths[0], declared);
      info_.class_names = std::move(numbers.names);
      info_.classes = numbers.classes;
      labels_ = std::move(numbers.labels);
    }
    if (predicts) info_.target = {0};
    info_.dtype = DType::float32;
    if (declared.training) expected_ = declared.training->sample;
    expected_ = info_.sample = first_readable_shape(*this, paths[0], skip_unreadable_);
    std::string described = to_string(info_.sample);
    for (const LabelledFiles::File& of : files_) described += "\n" + of.label;
    const auto path_of = [this](std::int64_t i) { return name_of(i); };
    info_.fingerprint = format("{} volumes {:016x} {:016x}", size(), xxh3(described.data(), described.size()),
                               content_hash(FileContents{size(), path_of, skip_unreadable_}));
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(files_); }
  bool holds_files() const override { return predicts_; }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t index) const override {
    return labels_.empty() ? 0 : labels_[static_cast<std::size_t>(index)];
  }
  std::string name_of(std::int64_t index) const override { return file(index).path; }
  std::string target_name_of(std::int64_t index) const override { return file(index).place; }

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
  const LabelledFiles::File& file(std::int64_t index) const { return files_[static_cast<std::size_t>(index)]; }

  void read_target_values(bool in_tables, const std::string& path) {
    if (!in_tables) data_error(path, "is a folder, but `value_column` is a column of a table", "give a .csv file");
    info_.target = {1};
    for (const LabelledFiles::File& of : files_) {
      float value = 0;
      const auto [end, problem] = std::from_chars(of.label.data(), of.label.data() + of.label.size(), value);
      if (problem != std::errc() || end != of.label.data() + of.label.size() || !std::isfinite(value)) {
        data_error(of.place, format("the value '{}' is not a number", of.label.substr(0, 40)), "correct the line");
      }
      values_.push_back(value);
    }
  }

  DatasetInfo info_;
  std::vector<LabelledFiles::File> files_;
  std::vector<std::int32_t> labels_;
  std::vector<float> values_;      // targets that are values
  std::optional<Shape> expected_;  // of all volumes
  bool skip_unreadable_;
  bool predicts_;
};

struct NiftiOptions final : DatasetOptions, VolumeColumns {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return std::make_shared<VolumeFiles>(paths_of({where}, "nifti"), *this, declared, false);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind, const DeclaredGroup& declared,
                           std::uint64_t) const override {
    const auto dataset =
        std::make_shared<VolumeFiles>(paths_of(pieces, "nifti"), *this, declared_of_both(declared), false);
    return {{dataset}, {dataset}};
  }
  std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                             const DeclaredInfo& declared) const override {
    return std::make_shared<VolumeFiles>(paths, *this, declared, true);
  }
};

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
