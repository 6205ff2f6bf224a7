// The data set of WebDataset's archives: groups their files into samples.
#include "io/datasets/records/webdataset.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/spec/reader.h"
#include "io/datasets/arrays/array.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/images/image_codec.h"
#include "io/datasets/options.h"
#include "io/datasets/records/shards.h"
#include "io/datasets/records/tar.h"

namespace trainctl {
namespace {

bool is_tar(const std::string& name) { return has_ending(name, {".tar"}); }

// Splits a member's name at the first dot after the last slash; the ending is converted to lower case.
std::pair<std::string, std::string> key_and_ending(const std::string& name) {
  const std::size_t base = name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1;
  const std::size_t dot = std::min(name.find('.', base), name.size());
  return {name.substr(0, dot), dot < name.size() ? lower_case(name.substr(dot + 1)) : ""};
}

// Reads the class number in a file; blanks and line ends around the number are ignored.
std::optional<std::int64_t> number_in(std::string_view text) {
  constexpr std::string_view blanks(" \t\r\n\0", 5);
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(blanks) + 1));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

class WebDataset final : public Dataset {
 public:
  WebDataset(const std::string& path, const WebDatasetFormat& endings, const DeclaredInfo& declared)
      : files_(shard_files(path, is_tar)),
        skip_unreadable_(declared.skip_unreadable),
        targets_may_miss_(declared.targets_may_miss()) {
    for (std::size_t file = 0; file < files_.size(); ++file) add_archive(file, endings);
    if (samples_.empty()) {
      data_error(path,
                 format("holds no samples: pairs of files KEY.{} and KEY.{}", join_or(endings.image), endings.label));
    }
    if (declared.sample && declared.sample->rank() == 3 && declared.sample->back() == 1) channels_ = 1;
    DeclaredInfo label_info = declared;
    label_info.use.target_values = false;  // the files hold classes
    targets_ = array_targets({path, {size()}, ElementType::int64, false, bytes_of(std::move(labels_))}, label_info);
    info_ = targets_->info();
    info_.sample = first_readable_shape(*this, path, skip_unreadable_);
    std::string keys;
    for (const SampleLocation& location : samples_) keys += format("{} {} ", location.image.name, location.image.size);
    const auto path_of = [this](std::int64_t i) { return files_[static_cast<std::size_t>(i)]; };
    info_.fingerprint = format("{} samples {:016x} {:016x}, {}", size(), xxh3(keys.data(), keys.size()),
                               content_hash(FileContents{std::ssize(files_), path_of}), info_.fingerprint);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(samples_); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t index) const override { return targets_->label(index); }
  std::string name_of(std::int64_t index) const override {
    const SampleLocation& location = samples_[static_cast<std::size_t>(index)];
    return format("{}:{}", files_[location.file], location.image.name);
  }

  void read(std::int64_t index, Sample& sample) const override {
    const SampleLocation& location = samples_[static_cast<std::size_t>(index)];
    const std::string name = name_of(index);
    with_remedy(skip_unreadable_, "get the file again, or set `on_error: skip`", [&] {
      if (location.image.size > largest_image_file) {
        data_error(name, format("has {} bytes, which is more than is supported", location.image.size));
      }
      const InputFile file(files_[location.file]);
      sample.scratch.resize(static_cast<std::size_t>(location.image.size));
      file.read(location.image.offset, sample.scratch.data(), location.image.size);
      decode_sample(sample.scratch.data(), location.image.size, channels_, name, sample);
    });
    targets_->read(index, sample);
  }

 private:
  struct SampleLocation {
    TarMember image;
    std::size_t file;  // index of its archive in files_
  };
  // The files of one sample that have been found so far.
  struct Group {
    std::string key;
    std::optional<TarMember> image;
    std::optional<std::int64_t> label;
  };

  void add_archive(std::size_t file, const WebDatasetFormat& endings) {
    const std::string& path = files_[file];
    Group group;
    for_each_member(path, [&](Cursor& cursor, const TarMember& member) {
      auto [key, ending] = key_and_ending(member.name);
      if (key.empty() || key.ends_with('/')) return;  // the name begins with a dot
      if (key != group.key) {
        add_sample(file, endings, group);
        group = {std::move(key), {}, {}};
      }
      const std::string name = format("{}:{}", path, member.name);
      const bool image = std::find(endings.image.begin(), endings.image.end(), ending) != endings.image.end();
      if (image ? group.image.has_value() : ending == endings.label && group.label) {
        data_error(name, format("the sample already has another {}", image ? "image" : "label"),
                   "each sample needs its own name");
      }
      if (image) group.image = member;
      if (ending == endings.label && !image) group.label = read_label(cursor, member, name);
    });
    add_sample(file, endings, group);
  }

  static std::int64_t read_label(Cursor& cursor, const TarMember& member, const std::string& name) {
    constexpr std::int64_t longest = 64;
    std::string text(static_cast<std::size_t>(std::min(member.size, longest + 1)), '\0');
    cursor.read(text.data(), std::ssize(text));
    const std::optional<std::int64_t> number = number_in(text);
    if (!number || member.size > longest) {
      data_error(name, format("'{}' is not a class number", text.substr(0, 20)), "store classes as numbers from 0");
    }
    return *number;
  }

  // Adds the sample whose files have been found.
  void add_sample(std::size_t file, const WebDatasetFormat& endings, Group& group) {
    if (!group.image && !group.label) return;
    if (targets_may_miss_) group.label = 0;
    if (!group.image || !group.label) {
      data_error(files_[file], format("the sample '{}' has no file .{}", group.key,
                                      group.image ? endings.label : join_or(endings.image)));
    }
    samples_.push_back({std::move(*group.image), file});
    labels_.push_back(*group.label);
  }

  std::vector<std::string> files_;
  std::vector<SampleLocation> samples_;
  std::vector<std::int64_t> labels_;  // moved to targets_ once all labels are read
  std::shared_ptr<const Dataset> targets_;
  DatasetInfo info_;
  std::int64_t channels_ = 3;
  bool skip_unreadable_ = false;
  bool targets_may_miss_ = false;  // samples need no label
};

struct WebDatasetOptions final : DatasetOptions, WebDatasetFormat {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    if (where.path.empty()) throw Error(ErrorKind::config, "webdataset needs `path`");
    return webdataset(where.path.text, *this, declared);
  }
  bool holds_image_files() const override { return true; }
  std::vector<std::string> files_of(const DataLocation& where) const override {
    return where.path.empty() ? std::vector<std::string>() : shard_files(where.path.text, is_tar);
  }
};

}  // namespace

std::shared_ptr<const Dataset> webdataset(const std::string& path, const WebDatasetFormat& format,
                                          const DeclaredInfo& declared) {
  return std::make_shared<WebDataset>(path, format, declared);
}

Section webdataset_choice() {
  return Keys<WebDatasetOptions>("webdataset",
                                 "Tar archives of images and class numbers with the same name: KEY.jpg, KEY.cls.")
      .key("path", &WebDatasetOptions::path,
           "An archive, a folder of .tar files, or a pattern with *, ? and {000..127}; archives are read in bytewise "
           "order of their names. Or a list of these, which are read one after another.")
      .key("image", &WebDatasetOptions::image, "The endings of images, in the formats of image_folder.")
      .key("label", &WebDatasetOptions::label, "The ending of the files with the class number, from 0.")
      .check([](const WebDatasetOptions& options, const Node& node, Reader& reader) {
        std::vector<std::string> endings = options.image;
        endings.push_back(options.label);
        for (const std::string& ending : endings) {
          const bool upper_case =
              std::any_of(ending.begin(), ending.end(), [](unsigned char c) { return std::isupper(c); });
          if (!ending.empty() && ending[0] != '.' && !upper_case) continue;
          reader.error(node.location,
                       format("an ending must be written in lower case and without its dot, not '{}'", ending));
        }
      });
}

}  // namespace trainctl
