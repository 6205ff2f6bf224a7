// A split of the data (training, validation, test): knows its samples and reads them into rows of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/checked.h"
#include "core/graph/tensor_type.h"
#include "core/metrics/target_encoding.h"
#include "io/datasets/dataset.h"
#include "io/loader/cache/cache.h"
#include "io/loader/images/mixing.h"
#include "io/loader/images/transform.h"
#include "io/loader/inputs/finite_read.h"
#include "io/loader/splits/order.h"
#include "io/loader/splits/stage_clock.h"

namespace trainctl {

// The weights of samples in training by their classes.
struct SampleClassWeights {
  std::vector<float> of_class = {};  // for each class of a target; empty: all are 1
  std::size_t target = 0;            // the number of the target
};

class DataSplit {
 public:
  struct Options {
    std::uint64_t seed = 0;  // seed of the augmentation
    OnError on_error = OnError::stop;
    MakeCache cache = {};  // empty: no cache
    SampleClassWeights class_weights = {};
    std::shared_ptr<const Mixing> mixing = nullptr;  // in training, for a split with one input; null: no mixing
    bool skip_non_finite = false;                    // skip samples that hold NaN or infinity, with any on_error
  };
  // An input: the data set of its samples, and the transforms applied to them.
  struct Input {
    std::shared_ptr<const Dataset> dataset;
    std::shared_ptr<const Transform> transform;
  };
  // A target: values or classes of a data set, masks, images of values, or the input itself.
  struct Target {
    std::shared_ptr<const Dataset> dataset;
    std::shared_ptr<const Transform> mask = nullptr;   // for masks: moves pixels like those of the first input's images
    std::shared_ptr<const Transform> image = nullptr;  // for images of values, which become float32
    bool input = false;   // the target is the first input after all transforms, which is float32
    bool unused = false;  // no program reads the target: it is one value, 0

    // The transform of a mask or an image; null for other targets.
    const Transform* transform() const { return mask ? mask.get() : image.get(); }
  };
  using Targets = std::vector<Target>;
  // A sample after the fixed geometry, before random augmentation. The cache keeps samples in this state.
  struct Prepared {
    std::vector<ImageView> inputs;
    std::vector<ImageView> targets;    // one for each target; empty if it is neither a mask nor an image
    std::vector<const float*> values;  // one for each target; null if it has classes or is an image
  };
  // The memory to which one sample is written: inputs of the types input_type(), targets of the types target_type().
  struct Row {
    std::vector<std::byte*> inputs, targets;
    float* weights = nullptr;  // weight_count() values
  };
  // The memory that one thread needs for read().
  struct Scratch {
    std::vector<Sample> samples;  // one for each data set
    std::vector<Transform::Scratch> inputs, targets;
    std::vector<std::uint8_t> mask;  // a mask after all transforms
    std::vector<std::byte> cached;   // a row of the cache
    Prepared prepared;
    Row partner;  // the sample that is mixed in, stored in `partner_values`
    std::vector<std::vector<float>> partner_values;
    StageClock* clock = nullptr;  // if set, measures read()
  };

  // Inputs and targets may share a data set, whose samples are then read once. Without targets, all weights are 1.
  DataSplit(std::vector<Input> inputs, Targets targets, Subset subset, const Options& options);

  const Subset& subset() const { return subset_; }
  std::int64_t size() const { return subset_.size(); }
  // The name of the sample at a position of the split, for messages: "train/cat/0012.jpg", "x.npy, sample 12".
  std::string name_of(std::int64_t position) const { return inputs_[0].dataset->name_of(subset_[position]); }
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t targets() const { return targets_.size(); }
  // The type of one sample in a batch.
  TensorType input_type(std::size_t input) const;
  // The type of one sample's target in an encoding, which must be possible for the target.
  TensorType target_type(std::size_t target, TargetEncoding encoding) const;
  // The info of a target after the transforms; `mode` is its label_mode.
  TargetInfo target_info(std::size_t target, LabelMode mode = LabelMode::integer) const;
  // The shape of one sample's weights: scalar, or the shape of its positions.
  Shape weight_shape() const;
  std::int64_t weight_count() const { return weight_shape().count(); }
  // Whether the weights are a mask that leaves out pixels without a class, or positions without a target.
  bool is_masked() const {
    if (targets_.empty()) return false;
    return targets_[0].dataset->info().ignores_positions || (targets_[0].mask && weight_shape().rank() > 0);
  }
  // The bytes of all samples in a cache.
  std::int64_t cached_bytes() const { return checked_multiply(subset_.size(), row_bytes_); }

  // Allocates the memory that one thread needs for read() with these target encodings.
  Scratch scratch(const std::vector<TargetEncoding>& encodings) const;
  // Reads sample `number` of the data sets into `row`; `encodings` are those of the targets. Returns whether the sample
  // was read. If it cannot be read, or holds NaN or infinity, throws Error{data} or, with OnError::skip, sets its
  // weight to 0 and logs a warning the first time. In training, the row of a skipped sample then holds another sample,
  // which is determined by the seed and the number, so that batch normalization sees only real data; otherwise it holds
  // zeros.
  bool read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
            const std::vector<TargetEncoding>& encodings) const;

 private:
  // Fills the row of a sample that cannot be read.
  void fill_skipped(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                    const std::vector<TargetEncoding>& encodings) const;
  // Reads a sample and applies the class weights; does not mix it.
  void read_weighted(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                     const std::vector<TargetEncoding>& encodings) const;
  // Reads a sample and applies all transforms.
  void read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                  const std::vector<TargetEncoding>& encodings) const;
  void mix(const Mixing::Mix& mix, const Row& partner, const Row& row,
           const std::vector<TargetEncoding>& encodings) const;
  // Reads a sample and applies the fixed geometry.
  void prepare(std::int64_t number, Scratch& scratch) const;
  // Write a prepared sample to a row of the cache, and read it from there.
  void pack(const Prepared& prepared, std::byte* to) const;
  void unpack(const std::byte* from, Prepared& prepared) const;
  bool skips(const Error& error) const;
  // Log a warning about a sample the first time. warn_of_problem() is for samples that can be read nevertheless, and
  // logs only a limited number of warnings.
  void warn_once(std::int64_t number, const std::string& text) const;
  void warn_of_problem(std::int64_t number, const std::string& text) const;
  std::size_t source_of(const std::shared_ptr<const Dataset>& dataset);

  std::vector<Input> inputs_;
  Targets targets_;
  std::vector<std::shared_ptr<const Dataset>> sources_;    // each data set once
  std::vector<std::size_t> input_source_, target_source_;  // for each input or target: its data set's index in sources_
  Subset subset_;
  Options options_;
  // The offsets, in bytes, of each input's prepared values and each target's mask or values in a row of the cache, and
  // the bytes of a row.
  std::vector<std::int64_t> input_offset_, target_offset_;
  std::int64_t row_bytes_ = 0;
  std::unique_ptr<SampleCache> cache_;
  mutable std::mutex named_mutex_;
  mutable std::set<std::int64_t> named_;  // numbers of samples that were named in a warning
};

}  // namespace trainctl
