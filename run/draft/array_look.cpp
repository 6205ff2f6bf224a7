// Finds what arrays hold.
#include "run/draft/array_look.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/array.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

constexpr std::size_t most_mask_classes = 64;   // pixels with more different whole numbers may be an image
constexpr std::int64_t max_classes = 1000;      // classes of a position; targets with larger whole numbers are values
constexpr std::int64_t max_tokens = 1'000'000;  // samples with larger whole numbers are values

// The array of this name in the folder or .npz file; empty if there is none.
std::optional<Array> find_array(const std::string& path, const std::string& name) {
  if (!is_folder(path)) return has_npz_array(path, name) ? std::optional(read_npz(path, name)) : std::nullopt;
  const std::string file = npy_in_folder(path, name);
  return file.empty() ? std::nullopt : std::optional(read_npy(file));
}

std::optional<Array> training_array(const std::string& path, const std::string& name) {
  std::optional<Array> found = find_array(path, name + "_train");
  return found ? found : find_array(path, name);
}

// Calls use(values) for each row, with its values as floats or whole numbers.
template <class T, class Use>
void for_rows(const Array& array, const Use& use) {
  if (array.shape.count() == 0) return;    // the header of a file of few bytes may say that there are many empty rows
  constexpr std::int64_t block = 1 << 20;  // values
  const std::int64_t rows = array.shape[0], row = array.shape.count() / rows;
  const std::int64_t each = std::max<std::int64_t>(1, block / row);
  std::vector<T> values;
  for (std::int64_t first = 0; first < rows; first += each) {
    const std::int64_t count = std::min(each, rows - first);
    values.resize(static_cast<std::size_t>(count * row));
    convert(array, first * row, count * row, values.data());
    for (std::int64_t i = 0; i < count; ++i) use(std::span(values).subspan(static_cast<std::size_t>(i * row), row));
  }
}

// One above the largest token id of the training and test samples; 0 if x holds values. The columns of a table of whole
// numbers have different ranges; the positions of sequences of tokens have the same one, except where most is padding.
std::int64_t vocabulary_of(const std::string& path, const Array& x) {
  constexpr std::int64_t fewest_positions = 4, smallest = 8;
  if (!is_integer(x.type) || x.type == ElementType::uint8 || x.shape.rank() != 2 || x.shape[1] < fewest_positions ||
      x.shape.count() == 0) {
    return 0;
  }
  std::vector<std::int64_t> largest(static_cast<std::size_t>(x.shape[1]), -1);
  bool negative = false;
  for_rows<std::int64_t>(x, [&](std::span<const std::int64_t> row) {
    for (std::size_t k = 0; k < row.size(); ++k) {
      largest[k] = std::max(largest[k], row[k]);
      negative = negative || row[k] < 0;
    }
  });
  std::int64_t top = *std::max_element(largest.begin(), largest.end());
  const auto wide = std::count_if(largest.begin(), largest.end(), [top](std::int64_t one) { return 2 * one >= top; });
  if (negative || top + 1 < smallest || 2 * wide < std::ssize(largest)) return 0;
  if (const std::optional<Array> test = find_array(path, "x_test"); test && is_integer(test->type)) {
    for_rows<std::int64_t>(*test, [&](std::span<const std::int64_t> row) {
      for (const std::int64_t id : row) top = std::max(top, id);
    });
  }
  return top < max_tokens ? top + 1 : 0;
}

// Properties of the values of all targets.
struct TargetValues {
  bool binary = true;        // all are 0 or 1
  bool one_each = true;      // the values of each sample add up to 1
  bool one_of_last = true;   // those along the last axis add up to 1 for each position
  std::int64_t largest = 0;  // largest value, if all are whole numbers
  bool negative = false;
};

TargetValues values_of(const Array& y) {
  TargetValues found;
  const auto last = static_cast<std::size_t>(y.shape.sizes().back());
  found.one_of_last = y.shape.rank() > 2 && last > 1;
  for_rows<float>(y, [&](std::span<const float> row) {
    float sum = 0, sum_of_last = 0;
    std::size_t k = 0;
    for (const float value : row) {
      found.binary = found.binary && (value == 0 || value == 1);
      sum += value;
      sum_of_last += value;
      if (++k % last != 0) continue;
      found.one_of_last = found.one_of_last && sum_of_last == 1;
      sum_of_last = 0;
    }
    found.one_each = found.one_each && sum == 1;
  });
  if (!is_integer(y.type)) return found;
  for_rows<std::int64_t>(y, [&](std::span<const std::int64_t> row) {
    for (const std::int64_t value : row) {
      found.largest = std::max(found.largest, value);
      found.negative = found.negative || value < 0;
    }
  });
  return found;
}

// The axes of a sample that are positions, and those of its values. Bytes [n, height, width] are images of one channel.
std::size_t axes_of_sample(const Array& x) {
  const auto axes = static_cast<std::size_t>(x.shape.rank()) - 1;
  return x.type == ElementType::uint8 && axes == 2 ? 3 : axes;
}

// Whether the targets [n, P...] have a value for each position of the samples: each step of [n, steps, ...] or token of
// [n, tokens], each pixel of [n, height, width, ...] or [n, depth, height, width, ...].
bool has_positions(const Array& x, bool tokens, const Array& y) {
  const std::size_t sample = static_cast<std::size_t>(x.shape.rank()) - 1;
  std::vector<std::int64_t> positions(y.shape.sizes().begin() + 1, y.shape.sizes().end());
  if (positions.size() > 1 && positions.back() == 1) positions.pop_back();
  const std::vector<std::int64_t> sizes(x.shape.sizes().begin() + 1, x.shape.sizes().end());
  if (tokens) return positions == sizes;
  // Sequences (steps, values), images and volumes with channels.
  const bool has_one_each =
      sample >= 2 && sample <= 4 && (positions.size() == sample - 1 || positions.size() == axes_of_sample(x) - 1);
  return has_one_each && std::equal(positions.begin(), positions.end(), sizes.begin());
}

// The number of channels of targets that are images of the samples' height and width; 0 for other targets. Whole
// numbers are values of pixels if the user says so, if they cannot be classes of pixels, or if they have a type of
// images and there are many of them.
std::int64_t channels_of_images(const Array& x, const Array& y, bool are_values) {
  const bool images = axes_of_sample(x) == 3 && (y.shape.rank() == 3 || y.shape.rank() == 4);
  if (!images || y.shape[1] != x.shape[1] || y.shape[2] != x.shape[2]) return 0;
  const std::int64_t channels = y.shape.rank() == 4 ? y.shape[3] : 1;
  if (channels > 4) return 0;
  if (are_values || !is_integer(y.type)) return channels;
  std::set<std::int64_t> different;
  bool negative = false;
  std::int64_t largest = 0;
  for_rows<std::int64_t>(y, [&](std::span<const std::int64_t> row) {
    for (const std::int64_t value : row) {
      if (different.size() <= most_mask_classes) different.insert(value);
      negative = negative || value < 0;
      largest = std::max(largest, value);
    }
  });
  const bool type_of_images = y.type == ElementType::uint8 || y.type == ElementType::uint16;
  const bool no_classes = negative || largest >= max_classes;
  return different.size() > most_mask_classes && (type_of_images || no_classes) ? channels : 0;
}

// The range of targets of one value each that are few whole numbers, but are not read as classes.
std::optional<std::pair<std::int64_t, std::int64_t>> few_whole_in(const Array& y) {
  constexpr std::size_t most = 20;
  std::set<float> different;
  bool whole = true;
  for_rows<float>(y, [&](std::span<const float> row) {
    whole = whole && row[0] == std::floor(row[0]) && std::abs(row[0]) < 1e6f;
    if (whole && different.size() <= most) different.insert(row[0]);
  });
  const bool few = whole && different.size() > 1 && different.size() <= most && 5 * std::ssize(different) <= y.shape[0];
  if (!few) return std::nullopt;
  return std::pair(static_cast<std::int64_t>(*different.begin()), static_cast<std::int64_t>(*different.rbegin()));
}

// Tells how many samples cannot be read, as a comment for `on_error: skip`; "" if all can. Throws Error{data} if none
// can.
std::string unreadable_in(const Array& x, const Array& y) {
  constexpr std::int64_t most = 200'000'000;  // values; reading more would take long
  const auto may_be_bad = [&](const Array& array) {
    const std::int64_t count = array.shape.count();
    return !is_integer(array.type) && array.shape[0] == x.shape[0] && count > 0 && count <= most;
  };
  if (!may_be_bad(x) && !may_be_bad(y)) return "";
  std::vector<bool> bad(static_cast<std::size_t>(x.shape[0]));
  for (const Array* array : {&x, &y}) {
    if (!may_be_bad(*array)) continue;
    std::size_t sample = 0;
    for_rows<float>(*array, [&](std::span<const float> row) {
      if (!std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); })) bad[sample] = true;
      ++sample;
    });
  }
  const auto count = std::count(bad.begin(), bad.end(), true);
  if (count == 0) return "";
  if (count == std::ssize(bad)) {
    data_error(x.path, "all samples hold NaN, infinity or numbers beyond the range of float32",
               "correct or scale the values");
  }
  return format("{} {} NaN, infinity or a number beyond float32, the first is sample {}", counted(count, "sample"),
                count == 1 ? "holds" : "hold", std::find(bad.begin(), bad.end(), true) - bad.begin());
}

[[noreturn]] void refuse_classes(const Array& y, const TargetValues& values) {
  if (values.binary && !is_integer(y.type) && !values.one_of_last) {
    data_error(
        y.path,
        format("holds 0 and 1 as floats of shape {}, which cannot be the classes of --targets", to_string(y.shape)),
        "store classes as whole numbers (in NumPy: y = y.astype('uint8'))");
  }
  if (values.binary && values.one_of_last) {
    data_error(
        y.path,
        format("holds one-hot vectors of shape {}, which cannot be the classes of --targets", to_string(y.shape)),
        "store the number of the class of each position (in NumPy: y = y.argmax(-1).astype('uint8'))");
  }
  data_error(y.path,
             format("holds {} of shape {}, which cannot be the classes of --targets",
                    is_integer(y.type) ? "whole numbers" : "numbers with fractions", to_string(y.shape)),
             "store classes as whole numbers from 0 (astype('int64') in NumPy) of shape [n], [n, 1] or one for each "
             "position of the samples, or as one-hot or multi-hot");
}

}  // namespace

ArrayLook look_at_arrays(const std::string& path, TargetsAre targets) {
  const std::optional<Array> x = training_array(path, "x"), y = training_array(path, "y");
  ArrayLook look;
  if (!x || !y || x->shape.rank() == 0 || y->shape.rank() == 0 || y->shape.count() == 0) return look;
  look.vocabulary = vocabulary_of(path, *x);
  for_rows<float>(*y, [&](std::span<const float> row) {
    for (const float value : row) look.largest = std::max(look.largest, std::abs(double{value}));
  });
  look.unreadable = unreadable_in(*x, *y);
  look.whole = is_integer(y->type);
  look.bytes = y->type == ElementType::uint8;
  if (targets != TargetsAre::classes) look.channels = channels_of_images(*x, *y, targets == TargetsAre::values);
  const std::int64_t each = y->shape.count() / y->shape[0];
  const TargetValues values = values_of(*y);
  if (y->shape.rank() > 2 && each > 1 && values.binary) {
    look.one_hot_masks = values.one_of_last;
    look.zero_one = !values.one_of_last && !look.whole;
  }
  if (look.channels > 0) {
    look.target = TargetMeaning::images;
    return look;
  }
  if (targets == TargetsAre::values) return look;
  const bool classes = targets == TargetsAre::classes;
  if (each == 1) {
    if (classes && !is_integer(y->type)) refuse_classes(*y, values);
    look.target = is_integer(y->type) ? TargetMeaning::class_number : TargetMeaning::values;
    look.few_whole = few_whole_in(*y);
    return look;
  }
  const bool whole = is_integer(y->type) && !values.negative && (classes || values.largest < max_classes);
  if (whole && has_positions(*x, look.vocabulary > 0, *y)) {
    look.target = TargetMeaning::position_classes;
    look.classes = std::max<std::int64_t>(values.largest + 1, 2);
  } else if (values.binary && y->shape.rank() == 2) {
    look.target = values.one_each ? TargetMeaning::one_hot : TargetMeaning::multi_hot;
  } else if (classes) {
    refuse_classes(*y, values);
  }
  return look;
}

}  // namespace trainctl
