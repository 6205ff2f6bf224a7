// Reads CIFAR's binary files.
#include "io/datasets/arrays/cifar10.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/options.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

constexpr std::int64_t side = 32, plane = side * side, pixels = 3 * plane;

// The files of a variant, and the layout of their records.
struct Layout {
  std::vector<std::string_view> training, test;  // names of files
  std::string_view archive_folder;               // the folder in the distributed archive
  std::string_view names;                        // the file of class names
  std::int64_t classes, label_bytes, label_at;   // a record begins with label_bytes bytes; byte label_at is the class

  std::int64_t record() const { return label_bytes + pixels; }
};

Layout layout_of(CifarVariant variant) {
  if (variant == CifarVariant::cifar10) {
    return {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
            {"test_batch.bin"},
            "cifar-10-batches-bin",
            "batches.meta.txt",
            10,
            1,
            0};
  }
  if (variant == CifarVariant::cifar100) {
    return {{"train.bin"}, {"test.bin"}, "cifar-100-binary", "fine_label_names.txt", 100, 2, 1};
  }
  return {{"train.bin"}, {"test.bin"}, "cifar-100-binary", "coarse_label_names.txt", 20, 2, 0};
}

// Returns the folder that holds the files: `path` or, in it, the folder of the distributed archive.
std::string find_folder(const std::string& path, const Layout& layout, CifarVariant variant) {
  const std::string below = format("{}/{}", path, layout.archive_folder);
  const auto holds = [](const std::string& folder, std::string_view file) {
    return exists(format("{}/{}", folder, file));
  };
  for (const std::string& folder : {path, below}) {
    if (holds(folder, layout.training[0]) || holds(folder, layout.test[0])) return folder;
  }
  const bool python = holds(path, "data_batch_1") || holds(path, "train");
  const bool other = holds(path, variant == CifarVariant::cifar10 ? "train.bin" : "data_batch_1.bin");
  data_error(path, format("has no file {}", layout.training[0]),
             python  ? "these are the files for Python: get the archive with the binary version"
             : other ? "set the `variant` of its files"
                     : "unpack the archive with the binary version there; configs of trainctl look for their data in "
                       "the folder that TRAINCTL_DATA names (default: data)");
}

// Returns the lines of a file that are not empty. Throws Error{data} if one is not UTF-8.
std::vector<std::string> names_in(const std::string& path) {
  constexpr std::int64_t max_bytes = 1 << 16;
  const std::string text = read_file(path, max_bytes, data_role);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    if (end > at) names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string& name : names) require_utf8_text(path, "the name of a class", name);
  return names;
}

class Cifar final : public Dataset {
 public:
  Cifar(const std::string& path, CifarVariant variant, bool training, const DeclaredInfo& declared)
      : layout_(layout_of(variant)) {
    const std::string folder = find_folder(path, layout_, variant);
    info_.sample = {side, side, 3};
    info_.classes = layout_.classes;
    if (declared.known_classes().value_or(layout_.classes) != layout_.classes) {
      data_error(folder, format("has {}, but the config sets {}", counted(layout_.classes, "class"),
                                declared.known_classes().value_or(0)));
    }
    for (const std::string_view name : training ? layout_.training : layout_.test) {
      add_file(format("{}/{}", folder, name));
    }
    read_names(format("{}/{}", folder, layout_.names));
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  bool in_memory() const override { return in_memory_; }
  std::int32_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  std::string name_of(std::int64_t index) const override {
    const File& file = file_of(index);
    return format("{}, sample {}", file.path, index - file.first);
  }

  // Converts the three planes of an image to pixels of three channels.
  void read(std::int64_t index, Sample& sample) const override {
    const File& file = file_of(index);
    const std::int64_t offset = (index - file.first) * layout_.record() + layout_.label_bytes;
    const std::byte* planes = file.bytes.in_memory() + offset;
    if (file.bytes.in_memory() == nullptr) {
      sample.scratch.resize(static_cast<std::size_t>(pixels));
      file.bytes.read(offset, sample.scratch.data(), pixels);
      planes = sample.scratch.data();
    }
    sample.buffer.resize(static_cast<std::size_t>(pixels));
    std::byte* to = sample.buffer.data();
    for (std::int64_t i = 0; i < plane; ++i) {
      for (std::int64_t c = 0; c < 3; ++c) *to++ = planes[c * plane + i];
    }
    sample.shape = info_.sample;
    sample.dtype = DType::uint8;
    sample.values = sample.buffer.data();
  }

 private:
  struct File {
    std::string path;
    Bytes bytes;
    std::int64_t first;  // number of its first sample
  };

  const File& file_of(std::int64_t index) const {
    const auto after = std::upper_bound(files_.begin(), files_.end(), index,
                                        [](std::int64_t i, const File& file) { return i < file.first; });
    return *std::prev(after);
  }

  void add_file(const std::string& path) {
    const Bytes bytes = loaded_if_small(open_data(path));
    const std::int64_t record = layout_.record();
    if (bytes.size() % record != 0) {
      data_error(path,
                 format("has {} bytes, which is not a multiple of the {} bytes of a record", bytes.size(), record),
                 "get the file again");
    }
    files_.push_back({path, bytes, size()});
    in_memory_ = in_memory_ && bytes.in_memory() != nullptr;
    for (std::int64_t at = 0; at < bytes.size(); at += record) {
      std::uint8_t label = 0;
      bytes.read(at + layout_.label_at, &label, 1);
      if (label >= layout_.classes) {
        data_error(path,
                   format("sample {} has label {}, which is not in 0 to {}", at / record, label, layout_.classes - 1),
                   "set the `variant` of the files, or get the file again");
      }
      labels_.push_back(label);
    }
    info_.fingerprint += format("{}{} samples {:016x}", info_.fingerprint.empty() ? "" : ", ", bytes.size() / record,
                                content_hash(bytes));
  }

  void read_names(const std::string& path) {
    if (!exists(path)) return;
    info_.class_names = names_in(path);
    if (std::ssize(info_.class_names) == layout_.classes) return;
    data_error(path, format("names {}, not {}", counted(info_.class_names.size(), "class"), layout_.classes),
               "get the file again, or remove it: classes then have numbers but no names");
  }

  Layout layout_;
  DatasetInfo info_;
  std::vector<File> files_;
  std::vector<std::uint8_t> labels_;
  bool in_memory_ = true;
};

struct Cifar10Options final : DatasetOptions {
  CifarVariant variant = CifarVariant::cifar10;

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind split, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    if (where.path.empty()) throw Error(ErrorKind::config, "cifar10 needs `path`");
    return cifar_dataset(where.path.text, variant, split == SplitKind::training, declared);
  }
  std::vector<std::string> files_of(const DataLocation&) const override { return {}; }
};

}  // namespace

std::shared_ptr<const Dataset> cifar_dataset(const std::string& folder, CifarVariant variant, bool training,
                                             const DeclaredInfo& declared) {
  return std::make_shared<Cifar>(folder, variant, training, declared);
}

Section cifar10_choice() {
  return Keys<Cifar10Options>("cifar10", "CIFAR-10 or CIFAR-100 in their binary files: images of 32x32x3.")
      .key("path", &Cifar10Options::path,
           "The folder of the files, or its parent folder, or a list of such folders. data_batch_*.bin (CIFAR-100: "
           "train.bin) are read for training, test_batch.bin (test.bin) for validation and test.")
      .key("variant", &Cifar10Options::variant,
           "The data set of the files: cifar100 has 100 classes, cifar100_coarse has the same images in 20 classes.");
}

}  // namespace trainctl
