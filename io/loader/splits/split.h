// A split of the data (training, validation, test): the samples that it has, and the reading of a sample into a row of
// a batch.
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

class DataSplit {
 public:
  struct Options {
    std::uint64_t seed = 0;  // of augmentation
    OnError on_error = OnError::stop;
    MakeCache cache = {};                            // empty: none
    std::vector<float> class_weights = {};           // by class of the first target, in training; empty: all are 1
    std::shared_ptr<const Mixing> mixing = nullptr;  // in training, of a split with one input; null: none
    bool skip_non_finite = false;  // samples that hold NaN or infinity are skipped, whatever on_error says
  };
  // An input: the data set of its samples, and the transforms applied to them.
  struct Input {
    std::shared_ptr<const Dataset> dataset;
    std::shared_ptr<const Transform> transform;
  };
  // A target: the data set that it is read from, or an image.
  struct Target {
    std::shared_ptr<const Dataset> dataset;
    std::shared_ptr<const Transform> mask = nullptr;  // of masks: brings them to where the first input's images are
    bool input = false;  // the target is the first input as the network gets it, which is float32
  };
  using Targets = std::vector<Target>;
  // A sample behind the fixed geometry, before what is done at random: as the cache keeps it.
  struct Prepared {
    std::vector<ImageView> inputs;
    std::vector<ImageView> masks;      // by target; empty where it is no mask
    std::vector<const float*> values;  // by target; null where it has classes
  };
  // The memory that one sample is written to: inputs of the types input_type(), targets of the types target_type().
  struct Row {
    std::vector<std::byte*> inputs, targets;
    float* weights = nullptr;  // weight_count() values
  };
  // The memory that one thread needs for read().
  struct Scratch {
    std::vector<Sample> samples;  // of each data set
    std::vector<Transform::Scratch> inputs, masks;
    std::vector<std::uint8_t> mask;  // behind all transforms
    std::vector<std::byte> cached;   // a row of the cache
    Prepared prepared;
    Row partner;  // the sample that is mixed in, in memory of `partner_values`
    std::vector<std::vector<float>> partner_values;
    StageClock* clock = nullptr;  // measures read(), where it is set
  };

  // Inputs and targets may share a data set; its samples are then read once. Without targets all weights are 1.
  DataSplit(std::vector<Input> inputs, Targets targets, Subset subset, const Options& options);

  const Subset& subset() const { return subset_; }
  std::int64_t size() const { return subset_.size(); }
  // The name of the sample at a position of the split, for messages: "train/cat/0012.jpg", "x.npy, sample 12".
  std::string name_of(std::int64_t position) const { return inputs_[0].dataset->name_of(subset_[position]); }
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t targets() const { return targets_.size(); }
  // The type of one sample in a batch.
  TensorType input_type(std::size_t input) const;
  // The type of one sample's target, in a form that the data set's targets can have.
  TensorType target_type(std::size_t target, TargetEncoding form) const;
  // The info of a target behind the transforms, where `mode` is its label_mode.
  TargetInfo target_info(std::size_t target, LabelMode mode = LabelMode::integer) const;
  // The shape of one sample's weights: scalar, or one for each of its positions.
  Shape weight_shape() const;
  std::int64_t weight_count() const { return weight_shape().count(); }
  // Whether the weights are a mask, which leaves out pixels that belong to no class.
  bool is_masked() const { return !targets_.empty() && targets_[0].mask && weight_shape().rank() > 0; }
  // Bytes of all samples as a cache keeps them.
  std::int64_t cached_bytes() const { return checked_multiply(subset_.size(), row_bytes_); }

  // Allocates the memory that one thread needs for read() with these forms of targets.
  Scratch scratch(const std::vector<TargetEncoding>& forms) const;
  // Reads sample `number` of the data sets into `row`; `forms` are the targets' forms. With on_error skip, a sample
  // that cannot be read, or that holds NaN or infinity, gets weight 0 and, the first time, a warning; in training its
  // place holds another sample, which follows from seed and number, so that batch normalization meets data alone, and
  // else zeros. Returns whether the sample was read. Otherwise throws Error{data}.
  bool read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
            const std::vector<TargetEncoding>& forms) const;

 private:
  // Fills the place of a sample that cannot be read.
  void fill_skipped(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                    const std::vector<TargetEncoding>& forms) const;
  // Reads a sample with its weights, unmixed.
  void read_weighted(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                     const std::vector<TargetEncoding>& forms) const;
  void read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row,
                  const std::vector<TargetEncoding>& forms) const;
  void mix(const Mixing::Mix& mix, const Row& partner, const Row& row, const std::vector<TargetEncoding>& forms) const;
  // Reads a sample and applies the fixed geometry.
  void prepare(std::int64_t number, Scratch& scratch) const;
  // Writes a prepared sample to a row of the cache, and finds it there.
  void pack(const Prepared& prepared, std::byte* to) const;
  void unpack(const std::byte* from, Prepared& prepared) const;
  bool skips(const Error& error) const;
  // Warns of a sample the first time; of odd samples that can be read only while they are few.
  void warn_once(std::int64_t number, const std::string& text) const;
  void warn_of_odd(std::int64_t number, const std::string& text) const;
  std::size_t source_of(const std::shared_ptr<const Dataset>& dataset);

  std::vector<Input> inputs_;
  Targets targets_;
  std::vector<std::shared_ptr<const Dataset>> sources_;    // each data set once
  std::vector<std::size_t> input_source_, target_source_;  // by input or target: its data set's number in sources_
  Subset subset_;
  Options options_;
  // Offsets in bytes of each input's prepared values and each target's mask or values in a row of the cache, and the
  // bytes of a row.
  std::vector<std::int64_t> input_offset_, target_offset_;
  std::int64_t row_bytes_ = 0;
  std::unique_ptr<SampleCache> cache_;
  mutable std::mutex named_mutex_;
  mutable std::set<std::int64_t> named_;  // samples that a warning named
};

}  // namespace trainctl
