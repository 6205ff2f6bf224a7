// A part of the data (training, validation, test): which samples it has and how one of them becomes a row of a batch.
#pragma once

#include <cstdint>
#include <memory>

#include "core/exec/batch_source.h"
#include "io/datasets/dataset.h"
#include "io/loader/cache.h"
#include "io/loader/order.h"
#include "io/loader/transform.h"

namespace trainctl {

enum class OnError { stop, skip };

// How the targets of a data set with classes are given.
enum class LabelMode {
  integer,      // int32 class number
  categorical,  // float32 [classes], 1 at the class
  binary,       // float32 [1], 0 or 1
};

class DataPart {
 public:
  struct Options {
    std::uint64_t seed = 0;  // of augmentation
    LabelMode label_mode = LabelMode::integer;
    OnError on_error = OnError::stop;
    bool cache = false;
  };
  // Memory of one thread.
  struct Scratch {
    Sample sample;
    Transform::Scratch transform;
  };
  // Where one sample goes. Input: as input_dtype() says. Target: an int32, or target_shape().count() floats.
  struct Row {
    std::byte* input = nullptr;
    std::byte* target = nullptr;
    float* weight = nullptr;
  };

  DataPart(std::shared_ptr<const Dataset> dataset, Subset subset, std::shared_ptr<const Transform> transform,
           const Options& options);

  const Dataset& dataset() const { return *dataset_; }
  const Subset& subset() const { return subset_; }
  std::int64_t size() const { return subset_.size(); }
  const Shape& sample_shape() const { return transform_->output_shape(); }
  DType input_dtype() const { return transform_->output_dtype(); }
  Shape target_shape() const;
  // int32 where targets are class numbers, otherwise float32.
  DType target_dtype() const;

  // Reads sample `number` of the data set. With on_error skip a sample that cannot be read gets weight 0, zeros, and a
  // warning.
  void read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row) const;

 private:
  void read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row) const;
  void write_target(std::int64_t number, const float* values, const Row& row) const;

  std::shared_ptr<const Dataset> dataset_;
  Subset subset_;
  std::shared_ptr<const Transform> transform_;
  Options options_;
  std::int64_t prepared_bytes_ = 0;
  std::unique_ptr<SampleCache> cache_;  // rows: the prepared values, then the target's values
};

}  // namespace trainctl
