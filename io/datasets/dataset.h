// A data set: samples by number. No state, so that any thread may read any sample at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace trainctl {

// The facts of a data set that need no sample to be read. One of inputs alone has the target [0], one of targets alone
// the sample [0].
struct DatasetFacts {
  Shape sample;                // as stored: [28, 28, 1]; where images differ in size, of the first one
  DType dtype = DType::uint8;  // of the values as they are read: uint8, float32, or int32 of tokens
  std::int64_t classes = 0;    // 0: targets are values
  Shape target;                // of one sample: scalar for a class number, [P...] for those of positions, or of values
  Shape weight;                // of one sample's weights: scalar, or [P...] of its positions
  std::vector<std::string> class_names;  // may be empty
  std::string fingerprint;               // of what the samples are; the same for a copy of the data
  std::string warning;                   // of what is not read; may be empty
  double scale = 1, offset = 0;          // a stored value v stands for scale * v + offset
};

// One sample as it is stored. The memory is reused from read to read; `values` and `target` point into it or into the
// data set.
struct Sample {
  Shape shape;
  DType dtype = DType::uint8;  // as facts().dtype
  const void* values = nullptr;
  const float* target = nullptr;  // where it has values: as many as facts().target counts

  std::vector<std::byte> buffer;  // float32 values made from other types, decoded images
  std::vector<float> target_buffer;
  std::vector<std::byte> scratch;  // a compressed file's bytes
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const DatasetFacts& facts() const = 0;
  virtual std::int64_t size() const = 0;
  // Throws Error{data} that names the file.
  virtual void read(std::int64_t index, Sample& sample) const = 0;
  // The class of a sample, without reading it; only where the data set has classes.
  virtual std::int32_t label(std::int64_t index) const = 0;
  // The classes of a sample's positions, as many as facts().target counts.
  virtual void read_labels(std::int64_t index, std::int32_t* labels) const { *labels = label(index); }
  // The weights of a sample or its positions, as many as facts().weight counts.
  virtual void read_weights(std::int64_t, float* weights) const { *weights = 1; }
  // For messages: "train/cat/0012.jpg", "x.npy, sample 12".
  virtual std::string name_of(std::int64_t index) const = 0;
  // Whether reading costs next to nothing, since the values lie in memory.
  virtual bool in_memory() const = 0;
};

// What loss and network make of an array, where it does not tell.
struct ArrayUse {
  bool target_values = false;  // whole-number targets are values, unless the config states classes
  bool class_numbers = false;  // several whole numbers of a sample's target are the classes of its positions
  std::int64_t tokens = 0;     // whole-number samples are tokens below this; 0: they are values
};

// Statements of the config, and for validation and test the facts of the training part.
struct StatedFacts {
  std::optional<Shape> sample;
  std::optional<std::int64_t> classes;
  const DatasetFacts* training = nullptr;
  ArrayUse use;
  bool skip_unreadable = false;  // a sample that cannot be read is not looked at, where others tell the shape

  // The number of classes that labels must lie below, where it is known.
  std::optional<std::int64_t> known_classes() const {
    return training ? std::optional<std::int64_t>(training->classes) : classes;
  }
};

// What the network makes of the data, by its inputs and outputs; names are empty where there is only one.
struct DataUse {
  struct Input {
    std::string name;
    std::int64_t tokens = 0;  // as ArrayUse says
  };
  struct Target {
    std::string name;
    bool values = false, class_numbers = false;  // as ArrayUse says
  };
  std::vector<Input> inputs = {Input{}};
  std::vector<Target> targets = {Target{}};

  // Whether the model names neither inputs nor outputs, and has one of each.
  bool unnamed() const { return inputs[0].name.empty() && targets[0].name.empty(); }
};

// The data sets that a run's samples come from: one for each input of the network and one for each output, whose
// samples of the same number belong together; the same one may be both. Weights are those of the first target.
struct DatasetGroup {
  std::vector<std::shared_ptr<const Dataset>> inputs, targets;

  std::int64_t size() const { return inputs[0]->size(); }
  // Each of them once.
  std::vector<const Dataset*> distinct() const;
};

// Statements for each of a group's data sets.
struct StatedGroup {
  std::vector<StatedFacts> inputs, targets;
  DataUse use;  // by the same numbers
};

// Throws Error{data} with the file in front; the remedy may be empty.
[[noreturn]] void data_error(const std::string& path, const std::string& message, const std::string& remedy = {});

}  // namespace trainctl
