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

// The info of a data set that are known without reading a sample. A data set of inputs alone has the target shape [0],
// one of targets alone the sample shape [0].
struct DatasetInfo {
  Shape sample;                // as stored: [28, 28, 1]; where images differ in size, the shape of the first
  DType dtype = DType::uint8;  // of the values that read() gives: uint8, float32, or int32 for tokens
  std::int64_t classes = 0;    // number of classes; 0: targets are values
  Shape target;  // of one sample: scalar for a class number, [P...] for those of positions, or the shape of its values
  Shape weight;  // shape of one sample's weights: scalar, or [P...] for its positions
  std::vector<std::string> class_names;    // may be empty
  std::string fingerprint;                 // hash of the samples; equal for a copy of the data
  std::string warning;                     // names data that is not read; may be empty
  bool masks = false;                      // samples are masks: bytes [height, width, 1] of class numbers
  double scale = 1, offset = 0;            // a stored value v stands for scale * v + offset
  std::shared_ptr<const TableInfo> table;  // csv: what the other splits take over from the training split's columns
};

// The size that a resize brings images to.
struct ResizeTarget {
  std::int64_t height = 0, width = 0;  // pixels
  bool shorter_side = false;           // `height` is that of the shorter side, and the other side is in proportion

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

// One sample as it is stored. Its buffers are reused by the next read(); `values` and `target` point into them or into
// the data set.
struct Sample {
  // Stated by the caller of read(): what images are resized to first. Decoders may then give a smaller image than the
  // stored one, which is at least as large as that in height and in width.
  std::optional<ResizeTarget> resize;

  Shape shape;
  Shape whole;                 // set by decoders of images: the stored image's shape
  DType dtype = DType::uint8;  // as info().dtype
  const void* values = nullptr;
  const float* target = nullptr;  // info().target.count() values; only where targets are values

  std::vector<std::byte> buffer;  // float32 values converted from other types, or a decoded image
  std::vector<float> target_buffer;
  std::vector<std::byte> scratch;  // the bytes of a compressed file
  double decoding_seconds = 0;     // what decoders took; they add to it
  std::string warning;             // set by decoders: what is odd about a file that can be read; else empty

  // The shape from which sizes behind a resize follow.
  const Shape& stored_shape() const { return whole.rank() == 3 ? whole : shape; }
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
  // The name of its target, where that lies in another file.
  virtual std::string target_name_of(std::int64_t index) const { return name_of(index); }
  // Whether each sample is a file, whose path name_of() gives.
  virtual bool holds_files() const { return false; }
  // Whether the values lie in memory, so that reading a sample costs almost nothing.
  virtual bool in_memory() const = 0;
};

// The meaning of an array of whole numbers for loss and network, where the array does not tell it.
struct ArrayUse {
  bool target_values = false;  // targets are values, unless the config states classes
  bool class_numbers = false;  // several numbers in a sample's target are the classes of its positions
  std::int64_t tokens = 0;     // samples are tokens, whole numbers below this; 0: values
};

// Statements of the config about a data set and, for validation and test, the info of the training split.
struct DeclaredInfo {
  std::optional<Shape> sample;
  std::optional<std::int64_t> classes;
  const DatasetInfo* training = nullptr;
  ArrayUse use;
  bool skip_unreadable = false;  // opening goes on where a sample cannot be read but another one can
  // The numbers of the samples that train, where the config splits others off; empty: all do. Statistics that a data
  // set takes of itself are those of samples that train.
  std::function<std::vector<std::int64_t>(const Dataset&)> trained_on;
  bool target_is_input = false;  // the network learns its input: targets need not be there

  // The number of classes, which labels must be below, where it is declared.
  std::optional<std::int64_t> known_classes() const {
    return training ? std::optional<std::int64_t>(training->classes) : classes;
  }
};

// The data sets of a split: one for each input and one for each output of the network. Equal sample numbers belong
// together, and one data set may serve as both. The weights are those of the first target.
struct DatasetGroup {
  std::vector<std::shared_ptr<const Dataset>> inputs, targets;

  std::int64_t size() const { return inputs[0]->size(); }
  // The group's data sets, each listed once.
  std::vector<const Dataset*> distinct() const;
};

// The shape of the first sample that can be read, where `skip_unreadable` lets others pass that cannot. Where none can:
// an error that names the path and what is wrong with the first.
Shape first_readable_shape(const Dataset& images, const std::string& path, bool skip_unreadable);

// Throws Error{data} with the path before the message; the remedy may be empty.
[[noreturn]] void data_error(const std::string& path, const std::string& message, const std::string& remedy = {});

// Calls body(item) for each item, and throws one Error{data} with all that these calls throw.
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

// Runs the read of a sample. An error of the data gets the remedy, unless samples that cannot be read are skipped.
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
