// Recognizes pairs of images by the names of folders and files, and by the resemblance of the images.
#include "run/draft/pair_folders.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/loader/images/resize.h"
#include "run/draft/class_splits.h"

namespace trainctl {
namespace {

// The names of folders that hold pairs: of the images, and of the targets.
bool are_names_of_pairs(const std::string& images, const std::string& targets) {
  static const std::vector<std::pair<std::string_view, std::string_view>> known{
      {"input", "target"},  {"inputs", "targets"}, {"image", "target"},      {"images", "targets"},
      {"input", "output"},  {"inputs", "outputs"}, {"noisy", "clean"},       {"noise", "clean"},
      {"lr", "hr"},         {"lowres", "highres"}, {"low_res", "high_res"},  {"source", "target"},
      {"blurred", "sharp"}, {"blur", "sharp"},     {"input", "gt"},          {"hazy", "clear"},
      {"hazy", "gt"},       {"degraded", "clean"}, {"input", "ground_truth"}};
  return std::ranges::find(known, std::pair<std::string_view, std::string_view>(images, targets)) != known.end();
}

// The names of which the first is usually that of the input.
bool are_in_order(const std::string& images, const std::string& targets) {
  static const std::vector<std::pair<std::string_view, std::string_view>> known{{"low", "high"},    {"gray", "color"},
                                                                                {"grey", "color"},  {"gray", "colour"},
                                                                                {"grey", "colour"}, {"small", "large"}};
  return are_names_of_pairs(images, targets) ||
         std::ranges::find(known, std::pair<std::string_view, std::string_view>(images, targets)) != known.end();
}

// The gray values of an image, resized to a few pixels.
struct Thumbnail {
  Shape stored;  // of the image
  std::vector<double> values;

  bool operator==(const Thumbnail&) const = default;
};

// Returns nullopt if the image cannot be read.
std::optional<Thumbnail> thumbnail(const std::string& path) {
  constexpr std::int64_t side = 8;
  Sample sample;
  try {
    read_image_file(path, 1, true, sample);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return std::nullopt;
  }
  ResizeScratch scratch;
  const ImageView small = resize(as_image(sample.values, sample.dtype, sample.shape), side, side, scratch);
  const auto* values = static_cast<const float*>(small.data);
  return Thumbnail{sample.shape, {values, values + side * side}};
}

// Pearson's correlation; 0 if one of both is constant.
double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mean_x += x[i] / n, mean_y += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

// Whether the images of two folders resemble those of the same names, and not those of other names. Copies of the same
// images are no pairs. The lists have the same order.
bool resemble(const std::string& one, const std::vector<std::string>& names, const std::string& other,
              const std::vector<std::string>& other_names) {
  constexpr std::size_t most = 16, least = 4;
  constexpr double resemblance = 0.5, distance = 0.3;
  std::vector<Thumbnail> left, right;
  const std::size_t count = std::min(names.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = i * names.size() / count;
    auto a = thumbnail(one + "/" + names[k]), b = thumbnail(other + "/" + other_names[k]);
    if (!a || !b) continue;
    left.push_back(std::move(*a));
    right.push_back(std::move(*b));
  }
  if (left.size() < least || left == right) return false;
  double own = 0, others = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    own += correlation(left[i].values, right[i].values) / static_cast<double>(left.size());
    others += correlation(left[i].values, right[(i + 1) % right.size()].values) / static_cast<double>(left.size());
  }
  return own > resemblance && own - others > distance;
}

// The names of the images in a folder in the order of their names without endings.
std::vector<std::string> names_by_stem(const std::string& folder) {
  std::vector<std::string> names = list_images(folder).images;
  std::ranges::stable_sort(names, {}, without_ending);
  return names;
}

// Whether at least half of the images have a partner of the same name; the data set names those without one.
bool share_names(const std::string& one, const std::string& other) {
  std::set<std::string> stems;
  const std::vector<std::string> names = names_by_stem(one), others = names_by_stem(other);
  for (const std::string& name : names) stems.insert(without_ending(name));
  const auto shared = static_cast<std::size_t>(
      std::ranges::count_if(others, [&](const std::string& name) { return stems.contains(without_ending(name)); }));
  return shared > 0 && 2 * shared >= std::max(names.size(), others.size());
}

// The names of the two folders in a folder; nullopt if it has another number of them.
std::optional<std::pair<std::string, std::string>> two_folders(const std::string& folder) {
  std::vector<std::string> found;
  for (const FolderEntry& entry : list_folder(folder)) {
    if (!is_system_name(entry.name) && is_folder(folder + "/" + entry.name)) found.push_back(entry.name);
    if (found.size() > 2) return std::nullopt;
  }
  if (found.size() != 2) return std::nullopt;
  return std::pair(found[0], found[1]);
}

// Whether the first images of two folders can be read, and that of the first folder has more pixels.
bool is_larger(const std::string& one, const std::string& other) {
  const auto pixels = [](const std::string& folder) -> std::int64_t {
    Sample sample;
    try {
      read_image_file(folder + "/" + names_by_stem(folder)[0], 1, true, sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      return 0;
    }
    return sample.shape.count();
  };
  const std::int64_t first = pixels(one), second = pixels(other);
  return second > 0 && first > second;
}

// The pairs in the two folders of a folder.
PairFolders pairs_in(const std::string& folder, TargetsAre targets) {
  const auto both = two_folders(folder);
  if (!both || split_named(both->first) != NamedSplit::none || split_named(both->second) != NamedSplit::none) return {};
  auto [images, target_images] = *both;
  if (are_in_order(lower_case(target_images), lower_case(images))) std::swap(images, target_images);
  const bool in_order = are_in_order(lower_case(images), lower_case(target_images));
  PairFolders found{folder + "/" + images, folder + "/" + target_images};
  if (targets == TargetsAre::values || are_names_of_pairs(lower_case(images), lower_case(target_images))) {
    if (!share_names(found.images, found.targets)) return {};
  } else {
    if (!have_equal_names(found.images, found.targets)) return {};
    if (!resemble(found.images, names_by_stem(found.images), found.targets, names_by_stem(found.targets))) return {};
    found.by_content = true;
  }
  if (!in_order && is_larger(found.images, found.targets)) std::swap(found.images, found.targets);
  return found;
}

PairTable columns_of_images(const std::string& path) {
  CsvLines lines(path, ',');
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) return {};
  const std::vector<std::string> header(fields.begin(), fields.end());
  if (!lines.next(fields) || fields.size() != header.size()) return {};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool named = has_ending(fields[i], {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"});
    if (named && file_type((folder / std::string(fields[i])).string()) == FileType::regular) {
      columns.push_back(header[i]);
    }
  }
  if (columns.size() != 2) return {};
  if (are_in_order(lower_case(columns[1]), lower_case(columns[0]))) std::swap(columns[0], columns[1]);
  return {columns[0], columns[1]};
}

}  // namespace

bool have_equal_names(const std::string& one, const std::string& other) {
  const std::vector<std::string> names = names_by_stem(one), others = names_by_stem(other);
  return !names.empty() && std::ranges::equal(names, others, {}, without_ending, without_ending);
}

PairSplits pair_splits(const std::string& folder, TargetsAre targets) {
  if (targets == TargetsAre::classes) return {};
  PairSplits splits;
  const PairFolders all = pairs_in(folder, targets);
  const auto split = [&](NamedSplit name) -> PairFolders {
    if (!all.found()) {
      const std::string path = split_folder(folder, name);
      return path.empty() ? PairFolders() : pairs_in(path, targets);
    }
    const PairFolders inner{split_folder(all.images, name), split_folder(all.targets, name), all.by_content};
    return inner.images.empty() || inner.targets.empty() ? PairFolders() : inner;
  };
  splits.training = split(NamedSplit::training);
  if (!splits.training.found()) return {all, {}, {}};
  splits.validation = split(NamedSplit::validation);
  splits.test = split(NamedSplit::test);
  return splits;
}

PairTable pair_table(const std::string& path) {
  try {
    return columns_of_images(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return {};  // the reader of tables says what is wrong
  }
}

}  // namespace trainctl
