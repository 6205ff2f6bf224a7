// A data set: samples by number. Reading has no side effects: any thread may read any sample at any time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct TableInfo;

// The properties of a data set that are known without reading a sample. A data set without targets has the target shape
// [0], one without inputs has the sample shape [0].
struct DatasetInfo {
  Shape sample;                // shape as stored, such as [28, 28, 1]; if images differ in size, of the first one
  DType dtype = DType::uint8;  // type of the values from read(): uint8, float32, or int32 for tokens
  std::int64_t classes = 0;    // number of classes; 0: targets are values
  // Shape of one target: scalar for a class number, [P...] for class numbers of positions, or the shape of its values.
  Shape target;
  Shape weight;  // shape of a sample's weights: scalar, or [P...] for the weights of its positions
  std::vector<std::string> class_names;  // may be empty
  // If targets are sequences of characters: the most steps in which ctc can spell a target, and where that target is.
  std::int64_t min_steps = 0;
  std::string min_steps_of;
  // If targets are tokens of text that is known: returns the number of bytes for which each token stands. Else empty.
  std::function<std::shared_ptr<const std::vector<float>>()> token_bytes;
  std::string fingerprint;         // hash of the samples; equal for a copy of the data
  std::string warning;             // text about data that is not read, or is rounded; may be empty
  bool ignores_positions = false;  // weights are a mask: positions of weight 0 do not exist for loss and metrics
  bool masks = false;              // samples are masks: bytes [height, width, 1] of class numbers
  // Samples are the targets: images of values, bytes [height, width, channels], which have transforms of their own.
  bool image_targets = false;
  std::int64_t sampling_rate = 0;          // sound: values of a channel in a second; 0: unknown
  double scale = 1, offset = 0;            // a stored value v means scale * v + offset
  std::shared_ptr<const TableInfo> table;  // csv: the columns of the training split, which all splits use
  // text_classification: the words of the training split from number 2 on; null if a tokenizer numbers tokens.
  std::shared_ptr<const std::vector<std::string>> vocabulary;
};

// The size of images after a resize.
struct ResizeTarget {
  std::int64_t height = 0, width = 0;  // pixels
  bool shorter_side = false;  // `height` is the length of the shorter side, and the other side is in proportion

  // The shape of an image [height, width, channels] after the resize.
  Shape of(const Shape& image) const {
    if (!shorter_side) return {height, width, image[2]};
    const auto shorter = static_cast<double>(std::min(image[0], image[1])), to = static_cast<double>(height);
    const auto scaled = [&](std::int64_t side) {
      return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * to / shorter));
    };
    return {scaled(image[0]), scaled(image[1]), image[2]};
  }
};

// One sample as it is stored. The next read() reuses its buffers; `values` and `target` point into them or into the
// data set.
struct Sample {
  // Set by the caller of read(): the size to which images are resized first. Decoders may then return an image that is
  // smaller than the stored one, but at least this size in height and in width.
  std::optional<ResizeTarget> resize;

  Shape shape;
  Shape whole;                 // set by decoders of images: the stored image's shape
  DType dtype = DType::uint8;  // same as info().dtype
  const void* values = nullptr;
  const float* target = nullptr;  // info().target.count() values; set only if targets are values

  std::vector<std::byte> buffer;  // float32 values converted from other types, or a decoded image
  std::vector<float> target_buffer;
  std::vector<std::byte> scratch;  // the bytes of a compressed file
  double decoding_seconds = 0;     // decoders add the time that they take
  std::string warning;             // set by decoders: a problem of a file that can be read nevertheless; else empty

  // The shape from which the sizes after a resize are computed.
  const Shape& stored_shape() const { return whole.rank() == 3 ? whole : shape; }

  // Makes the values an int32 array of this shape in `buffer`. Returns the array, which the caller fills.
  std::int32_t* make_int32(const Shape& array_shape);
};

// The parts of a series: the samples [0, training_end) lie before a point in time, and those from `validation_begin` on
// lie after it.
struct TimeSplit {
  std::int64_t training_end = 0, validation_begin = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const DatasetInfo& info() const = 0;
  virtual std::int64_t size() const = 0;
  // Reads sample `index` in [0, size()). Throws Error{data} that names the file.
  virtual void read(std::int64_t index, Sample& sample) const = 0;
  // The class of a sample, without reading the sample; only for data sets with classes.
  virtual std::int32_t label(std::int64_t index) const = 0;
  // Writes the classes of a sample's positions: info().target.count() labels.
  virtual void read_labels(std::int64_t index, std::int32_t* labels) const { *labels = label(index); }
  // Writes the weights of a sample or of its positions: info().weight.count() values.
  virtual void read_weights(std::int64_t, float* weights) const { *weights = 1; }
  // The name of a sample for messages: "train/cat/0012.jpg", "x.npy, sample 12".
  virtual std::string name_of(std::int64_t index) const = 0;
  // The name of a sample's target, which may be in another file.
  virtual std::string target_name_of(std::int64_t index) const { return name_of(index); }
  // Whether each sample is a file; name_of() then returns its path.
  virtual bool holds_files() const { return false; }
  // For windows of a series: the parts that share no row if the last `share` of the rows is held out; both have
  // samples. nullopt for samples that do not overlap, which are split at random. Throws Error{data} if a part has no
  // sample.
  virtual std::optional<TimeSplit> split_by_time(double) const { return std::nullopt; }
  // Whether the values are in memory, so that reading a sample takes almost no time.
  virtual bool in_memory() const = 0;
};

// The meaning of an array of whole numbers for the loss and the network; the array itself does not determine it.
struct ArrayUse {
  bool target_values = false;  // targets are values, unless the config sets `classes`
  bool class_numbers = false;  // if a sample's target has several numbers, they are the classes of its positions
  std::int64_t tokens = 0;     // samples are tokens, whole numbers below this; 0: values
  std::optional<std::int64_t> ignored = {};  // a number among the targets that need not be a class
};

// The info about a data set in the config and, for validation and test, the info of the training split.
struct DeclaredInfo {
  std::optional<Shape> sample;
  std::optional<std::int64_t> classes;
  const DatasetInfo* training = nullptr;  // null for the training split itself
  ArrayUse use;
  bool skip_unreadable = false;  // opening succeeds if any sample can be read
  // Returns the numbers of the samples that are used for training if the config splits off a validation split; empty:
  // all samples are. Statistics of a data set are computed on these samples only.
  std::function<std::vector<std::int64_t>(const Dataset&)> trained_on;
  bool target_is_input = false;   // the network reproduces its input: targets may be missing
  bool target_unused = false;     // the network reads no target: targets may be missing
  std::string cache_folder = {};  // for files that are made once; empty: the default folder

  // Whether a data set without targets can be opened.
  bool targets_may_miss() const { return target_is_input || target_unused; }
  // The number of classes, if it is known; all labels must be below it.
  std::optional<std::int64_t> known_classes() const {
    return training ? std::optional<std::int64_t>(training->classes) : classes;
  }
};

// The data sets of a split: one for each input and one for each output of the network. Samples with the same number
// belong together, and the same data set may be listed as input and as target. The weights are those of the first
// target.
struct DatasetGroup {
  std::vector<std::shared_ptr<const Dataset>> inputs, targets;

  std::int64_t size() const { return inputs[0]->size(); }
  // The group's data sets, each listed once.
  std::vector<const Dataset*> distinct() const;
};

// Returns the shape of the first sample; with `skip_unreadable`, of the first one that can be read. Throws Error{data}
// that names the path and the first sample's problem if none can be read.
Shape first_readable_shape(const Dataset& images, const std::string& path, bool skip_unreadable);

// The error, of kind `data`, for a sample or target that holds NaN, infinity or a number that float32 cannot hold.
struct NonFiniteError final : Error {
  using Error::Error;
};

// Describes numbers that become infinite as float32, for messages.
inline constexpr const char* beyond_float32 = "beyond the range of float32, about 3.4e38";

// Throws Error{data} with the path before the message; the remedy may be empty.
[[noreturn]] void data_error(const std::string& path, const std::string& message, const std::string& remedy = {});

// Calls body(item) for each item. If some of these calls throw Error{data}, throws one Error{data} with all their
// messages.
template <class Items, class Body>
void with_all_errors(const Items& items, Body body) {
  std::vector<Error> errors;
  for (const auto& item : items) {
    try {
      body(item);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      errors.push_back(error);
    }
  }
  if (errors.size() == 1) throw errors[0];
  std::string problems;
  for (const Error& error : errors) problems += (problems.empty() ? "" : "\n") + std::string(error.what());
  if (!problems.empty()) throw Error(ErrorKind::data, problems);
}

// Calls read(), which reads a sample. Adds the remedy to an Error{data}, unless samples that cannot be read are
// skipped.
template <class Read>
void with_remedy(bool skip_unreadable, const char* remedy, Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (skip_unreadable || error.kind() != ErrorKind::data) throw;
    throw Error(ErrorKind::data, error.what(), remedy);
  }
}

}  // namespace trainctl
