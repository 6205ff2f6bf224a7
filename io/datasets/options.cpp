// The table of data sets, and how a data set of several pieces is opened.
#include "io/datasets/options.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/concatenated.h"
#include "io/datasets/text/text_tokenizer.h"

namespace trainctl {

const ChoiceTable& dataset_choices() {
  static const ChoiceTable table{
      "data set",
      {idx_choice(), image_folder_choice(), segmentation_folder_choice(), image_pairs_choice(), image_text_choice(),
       audio_classification_choice(), nifti_choice(), npy_choice(), csv_choice(), cifar10_choice(), tfrecord_choice(),
       webdataset_choice(), text_choice(), text_classification_choice(), synthetic_choice()}};
  return table;
}

namespace {

// Calls visit(list) for each list of paths.
template <class Visit>
void for_each_list(const DataLocations& where, Visit visit) {
  for (const auto* list :
       {&where.path, &where.images, &where.labels, &where.weights, &where.masks, &where.target_images}) {
    visit(*list);
  }
  for (const auto* by_name : {&where.x, &where.y}) {
    for (const auto& entry : by_name->entries) visit(entry.value);
  }
}

Path item(const OneOrMore<Path>& list, std::size_t i) { return i < list.items.size() ? list.items[i] : Path{}; }

ByName<Path> item(const ByName<OneOrMore<Path>>& lists, std::size_t i) {
  ByName<Path> found;
  for (const auto& entry : lists.entries) found.entries.push_back({entry.name, entry.location, item(entry.value, i)});
  return found;
}

}  // namespace

std::vector<DataLocation> DataLocations::pieces() const {
  std::size_t count = 1;
  for_each_list(*this, [&](const OneOrMore<Path>& list) { count = std::max(count, list.items.size()); });
  std::vector<DataLocation> found;
  for (std::size_t i = 0; i < count; ++i) {
    found.push_back({item(path, i), item(images, i), item(labels, i), item(x, i), item(y, i), item(weights, i),
                     item(masks, i), item(target_images, i), samples});
  }
  return found;
}

bool DataLocations::exist() const {
  bool all = true;
  for_each_list(*this, [&all](const OneOrMore<Path>& list) {
    all = all && std::ranges::all_of(list.items, [](const Path& path) { return exists(path.text); });
  });
  return all;
}

void DataLocations::check_lengths(const SourceLocation& location, Reader& reader) const {
  std::optional<std::size_t> count;
  bool uneven = false;
  for_each_list(*this, [&](const OneOrMore<Path>& list) {
    if (list.empty()) return;
    uneven = uneven || count.value_or(list.items.size()) != list.items.size();
    count = list.items.size();
  });
  if (uneven) reader.error(location, "lists of files that belong together must have the same length");
}

DeclaredInfo declared_of_both(const DeclaredGroup& declared) {
  require(declared.inputs.size() == 1 && declared.targets.size() == 1,
          "the data set does not have one input and one target");
  DeclaredInfo both = declared.targets[0];
  both.sample = declared.inputs[0].sample;
  both.use.tokens = declared.inputs[0].use.tokens;
  return both;
}

std::vector<std::string> paths_of(const std::vector<DataLocation>& pieces, const char* dataset) {
  std::vector<std::string> paths;
  for (const DataLocation& piece : pieces) {
    if (piece.path.empty()) throw Error(ErrorKind::config, format("{} needs `path`", dataset));
    paths.push_back(piece.path.text);
  }
  return paths;
}

std::vector<std::string> DatasetOptions::files_of(const DataLocation& where) const {
  std::vector<std::string> files;
  for (const Path* path : {&where.path, &where.images}) {
    if (!path->empty()) files.push_back(path->text);
  }
  for (const auto& entry : where.x.entries) {
    if (!entry.value.empty()) files.push_back(entry.value.text);
  }
  return files;
}

std::optional<LanguageText> DatasetOptions::language_text() const { return std::nullopt; }

DatasetGroup DatasetOptions::open_group(const DataLocation& where, SplitKind split, const DeclaredGroup& declared,
                                        std::uint64_t seed) const {
  const std::shared_ptr<const Dataset> dataset = open(where, split, declared_of_both(declared), seed);
  return {{dataset}, {dataset}};
}

DatasetGroup DatasetOptions::open_pieces(const std::vector<DataLocation>& pieces, SplitKind split,
                                         const DeclaredGroup& declared, std::uint64_t seed) const {
  if (pieces.size() == 1) return open_group(pieces[0], split, declared, seed);
  std::vector<DatasetGroup> groups;
  with_all_errors(pieces,
                  [&](const DataLocation& piece) { groups.push_back(open_group(piece, split, declared, seed)); });
  return concatenated(groups, holds_image_files());
}

}  // namespace trainctl
