// The data set of images with a text each, whose characters are the classes of a sequence: photos of words, and
// handwriting.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/table.h"
#include "core/base/utf8.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/options.h"
#include "io/datasets/tables/file_table.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* blank = "(blank)";  // the name of class 0

// An image file, its text, and where the text is written, for messages: "words.csv, line 12".
struct TextImage {
  std::string path;
  std::vector<std::string> characters;
  std::string place;
};

// The columns of a table of images and texts.
struct TextColumns {
  std::string image = "image", text = "text";
};

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    characters.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return characters;
}

void add_table(const std::string& path, const TextColumns& columns, std::vector<TextImage>& images) {
  for (FileRow& row : read_file_table(path, {columns.image, "image_column"}, {columns.text, "text_column"})) {
    images.push_back({std::move(row.path), characters_of(row.text), std::move(row.place)});
  }
}

// The images of a folder, whose names without their endings are the texts. Returns a text about files that are left
// out.
std::string add_folder(const std::string& folder, std::vector<TextImage>& images) {
  const ImageListing listing = list_images(folder);
  if (listing.images.empty()) refuse_no_images(folder, listing);
  for (const std::string& name : listing.images) {
    const std::string path = folder + "/" + name;
    require_utf8_path(path);
    images.push_back({path, characters_of(without_ending(fs::path(name).filename().string())), path});
  }
  const std::string left_out = listing.text_of_left_out();
  return left_out.empty() ? "" : format("{}: {}", folder, left_out);
}

class ImageText final : public Dataset {
 public:
  ImageText(const std::vector<std::string>& paths, const TextColumns& columns, std::optional<std::int64_t> length,
            const DeclaredInfo& declared)
      : skip_unreadable_(declared.skip_unreadable) {
    with_all_errors(paths, [&](const std::string& path) {
      if (is_folder(path)) {
        const std::string warning = add_folder(path, images_);
        if (!info_.warning.empty() && !warning.empty()) info_.warning += "; ";
        info_.warning += warning;
      } else {
        add_table(path, columns, images_);
      }
    });
    number_characters(paths[0], declared);
    choose_length(length, declared.training);
    if (declared.sample && declared.sample->rank() == 3 && declared.sample->back() == 1) channels_ = 1;
    info_.sample = first_readable_shape(*this, paths[0], skip_unreadable_);
    const auto path_of = [this](std::int64_t i) { return name_of(i); };
    std::string characters;
    for (const std::string& name : info_.class_names) characters += name + '\n';
    info_.fingerprint = format("{} images {:016x} {:016x} {:016x}", size(), xxh3(characters.data(), characters.size()),
                               xxh3(ids_.data(), ids_.size() * sizeof ids_[0]),
                               content_hash(FileContents{size(), path_of, skip_unreadable_}));
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(images_); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t index) const override {
    return ids_[static_cast<std::size_t>(index * info_.target[0])];
  }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    std::copy_n(ids_.begin() + index * info_.target[0], info_.target[0], labels);
  }
  std::string name_of(std::int64_t index) const override { return images_[static_cast<std::size_t>(index)].path; }
  std::string target_name_of(std::int64_t index) const override {
    return images_[static_cast<std::size_t>(index)].place;
  }
  void read(std::int64_t index, Sample& sample) const override {
    read_image_file(name_of(index), channels_, skip_unreadable_, sample);
  }

 private:
  // Numbers the characters of the training split from 1 on, in bytewise order.
  void number_characters(const std::string& path, const DeclaredInfo& declared) {
    if (declared.training) {
      info_.class_names = declared.training->class_names;
    } else {
      std::set<std::string> characters;
      for (const TextImage& image : images_) characters.insert(image.characters.begin(), image.characters.end());
      info_.class_names = {blank};
      info_.class_names.insert(info_.class_names.end(), characters.begin(), characters.end());
      if (declared.classes && *declared.classes != std::ssize(info_.class_names)) {
        data_error(path, format("has texts of {} different characters, which are {} classes with the blank, but the "
                                "config sets {} classes",
                                characters.size(), characters.size() + 1, *declared.classes));
      }
    }
    info_.classes = std::ssize(info_.class_names);
  }

  // Sets the length of targets, and writes the numbers of all characters.
  void choose_length(std::optional<std::int64_t> length, const DatasetInfo* training) {
    std::int64_t longest = 1;
    for (const TextImage& image : images_) longest = std::max<std::int64_t>(longest, std::ssize(image.characters));
    const std::int64_t limit = length ? *length : training ? training->target[0] : longest;
    info_.target = {limit};
    ids_.resize(images_.size() * static_cast<std::size_t>(limit));
    auto row = ids_.begin();
    for (const TextImage& image : images_) {
      if (std::ssize(image.characters) > limit) {
        data_error(image.place,
                   format("the text has {}, but targets have {}", counted(image.characters.size(), "character"), limit),
                   format("set `length: {}` or more, which is for all splits", longest));
      }
      std::transform(image.characters.begin(), image.characters.end(), row,
                     [&](const std::string& character) { return number_of(character, image.place); });
      need_steps(image);
      row += limit;
    }
  }

  std::int32_t number_of(const std::string& character, const std::string& place) const {
    const auto first = info_.class_names.begin() + 1;
    const auto found = std::lower_bound(first, info_.class_names.end(), character);
    if (found == info_.class_names.end() || *found != character) {
      data_error(place, format("the text has the character '{}', which no text of the training split has", character),
                 "correct the text, or train with a text that has the character");
    }
    return static_cast<std::int32_t>(found - info_.class_names.begin());
  }

  // Keeps the largest number of steps that a text needs.
  void need_steps(const TextImage& image) {
    std::int64_t steps = std::ssize(image.characters);
    for (std::size_t i = 1; i < image.characters.size(); ++i) {
      if (image.characters[i] == image.characters[i - 1]) ++steps;
    }
    if (steps <= info_.min_steps) return;
    info_.min_steps = steps;
    info_.min_steps_of = image.place;
  }

  DatasetInfo info_;
  std::vector<TextImage> images_;
  std::vector<std::int32_t> ids_;  // the numbers of the characters of all samples, [samples, length]; 0 fills a row
  std::int64_t channels_ = 3;
  bool skip_unreadable_ = false;
};

struct ImageTextOptions final : DatasetOptions, TextColumns {
  std::optional<std::int64_t> length;

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return std::make_shared<ImageText>(paths_of({where}, "image_text"), *this, length, declared);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind, const DeclaredGroup& declared,
                           std::uint64_t) const override {
    const auto dataset =
        std::make_shared<ImageText>(paths_of(pieces, "image_text"), *this, length, declared_of_both(declared));
    return {{dataset}, {dataset}};
  }
  bool holds_image_files() const override { return true; }
};

}  // namespace

Section image_text_choice() {
  return Keys<ImageTextOptions>(
             "image_text",
             "Images, as image_folder reads them, with a text each, for the loss ctc: a target is the row of the "
             "numbers of its characters. The characters of the training texts are numbered from 1 on, in the order of "
             "their code points; 0 is the blank and fills the rows of shorter texts. The network ends in an output for "
             "each character and the blank. The run keeps the characters, so that `predict` prints texts.")
      .key("path", &ImageTextOptions::path,
           "A .csv file with a column of image files, relative to its folder, and a column of texts; or a folder of "
           "images whose names, without their endings, are their texts. A list of these is one data set.")
      .key("image_column", &ImageTextOptions::image, "The column of the image files.")
      .key("text_column", &ImageTextOptions::text, "The column of the texts.")
      .key("length", &ImageTextOptions::length,
           "The largest number of characters of a text; default: that of the training split.", between(1, 1 << 20));
}

}  // namespace trainctl
