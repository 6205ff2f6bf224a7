// Recognizes pairs of images by the names of folders and files, and by the resemblance of the images.
#include "run/draft/pair_folders.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/images/image_files.h"
#include "io/loader/images/resize.h"
#include "run/draft/class_splits.h"
#include "run/draft/pair_names.h"

namespace trainctl {
namespace {

// An image, resized to a few pixels.
struct Thumbnail {
  Shape stored;                // of the image
  std::vector<double> values;  // of three channels
  std::vector<double> gray;

  bool operator==(const Thumbnail&) const = default;
};

// Returns nullopt if the image cannot be read.
std::optional<Thumbnail> thumbnail(const std::string& path) {
  constexpr std::int64_t side = 8;
  Sample sample;
  try {
    read_image_file(path, 3, true, sample);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return std::nullopt;
  }
  ResizeScratch scratch;
  const ImageView small = resize(as_image(sample.values, sample.dtype, sample.shape), side, side, scratch);
  const auto* values = static_cast<const float*>(small.data);
  Thumbnail made{sample.shape, {values, values + 3 * side * side}, {}};
  for (const auto* pixel = values; pixel < values + 3 * side * side; pixel += 3) {
    made.gray.push_back(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]);
  }
  return made;
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
    own += correlation(left[i].gray, right[i].gray) / static_cast<double>(left.size());
    others += correlation(left[i].gray, right[(i + 1) % right.size()].gray) / static_cast<double>(left.size());
  }
  return own > resemblance && own - others > distance;
}

// The names of the images in a folder in the order of their names without endings.
std::vector<std::string> names_by_stem(const std::string& folder) {
  std::vector<std::string> names = list_images(folder).images;
  std::ranges::stable_sort(names, {}, without_ending);
  return names;
}

// Whether two folders hold equally many images of the same names without endings.
bool have_equal_names(const std::string& one, const std::string& other) {
  const std::vector<std::string> names = names_by_stem(one), others = names_by_stem(other);
  return !names.empty() && std::ranges::equal(names, others, {}, without_ending, without_ending);
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

// The pairs in two folders of a folder, given by their names in either order.
PairFolders pairs_of(const std::string& folder, std::string images, std::string target_images, TargetsAre targets) {
  if (are_in_order(target_images, images)) std::swap(images, target_images);
  const bool in_order = are_in_order(images, target_images);
  PairFolders found{folder + "/" + images, folder + "/" + target_images};
  if (targets == TargetsAre::values || are_names_of_pairs(images, target_images)) {
    if (!share_names(found.images, found.targets)) return {};
  } else {
    if (!have_equal_names(found.images, found.targets)) return {};
    if (!resemble(found.images, names_by_stem(found.images), found.targets, names_by_stem(found.targets))) return {};
    found.by_content = true;
  }
  if (!in_order && is_larger(found.images, found.targets)) std::swap(found.images, found.targets);
  return found;
}

// The pairs in the only two folders of a folder.
PairFolders pairs_in(const std::string& folder, TargetsAre targets) {
  const std::vector<std::string> both = folders_in(folder);
  if (both.size() != 2) return {};
  if (split_named(both[0]) != NamedSplit::none || split_named(both[1]) != NamedSplit::none) return {};
  return pairs_of(folder, both[0], both[1], targets);
}

// The pairs of a split: in a folder of its name (train/low and train/high), or in two folders (train_LR and train_HR).
PairFolders pairs_of_split(const std::string& folder, NamedSplit split, TargetsAre targets) {
  std::vector<std::string> named = folders_in(folder);
  std::erase_if(named, [&](const std::string& name) { return split_named(name) != split; });
  const bool are_pairs =
      named.size() == 2 && (are_names_of_pairs(named[0], named[1]) || are_names_of_pairs(named[1], named[0]));
  if (are_pairs) return pairs_of(folder, named[0], named[1], targets);
  if (named.empty()) return {};
  for (std::string inner = folder + "/" + named[0]; !inner.empty(); inner = only_folder(inner)) {
    PairFolders found = pairs_in(inner, targets);
    if (found.found()) return found;
  }
  return {};
}

// The pairs of all splits in a folder.
PairSplits splits_in(const std::string& folder, TargetsAre targets) {
  const PairFolders all = pairs_in(folder, targets);
  const auto split = [&](NamedSplit name) -> PairFolders {
    if (!all.found()) return pairs_of_split(folder, name, targets);
    const PairFolders inner{split_folder(all.images, name), split_folder(all.targets, name), all.by_content};
    return inner.images.empty() || inner.targets.empty() ? PairFolders() : inner;
  };
  PairSplits splits;
  splits.training = split(NamedSplit::training);
  if (!splits.training.found()) return {all, {}, {}};
  splits.validation = split(NamedSplit::validation);
  splits.test = split(NamedSplit::test);
  return splits;
}

}  // namespace

PairSplits pair_splits(const std::string& folder, TargetsAre targets) {
  if (targets == TargetsAre::classes) return {};
  for (std::string root = folder; !root.empty(); root = only_folder(root)) {
    PairSplits splits = splits_in(root, targets);
    if (splits.training.found()) return splits;
  }
  return {};
}

void refuse_several_pairs(const std::string& folder, TargetsAre targets) {
  if (targets == TargetsAre::classes) return;
  std::vector<std::pair<std::string, PairFolders>> holders;
  for (const std::string& name : folders_in(folder)) {
    holders.emplace_back(folder + "/" + name, pairs_in(folder + "/" + name, targets));
    if (!holders.back().second.found()) return;
  }
  if (holders.size() < 2) return;
  // Most of the pairs are likely those of the training.
  std::ranges::stable_sort(holders, std::greater<>(),
                           [](const auto& holder) { return list_images(holder.second.images).images.size(); });
  const PairFolders& other = holders[1].second;
  data_error(
      folder,
      format("{} of its folders hold pairs of images: {} and {}{}", holders.size(), holders[0].first, holders[1].first,
             holders.size() > 2 ? ", ..." : ""),
      format("call init with the folder of the training pairs, such as {}, and name held-out ones in its config: "
             "`validation: {{images: {}, target_images: {}}}`",
             holders[0].first, other.images, other.targets));
}

}  // namespace trainctl
