// A part of the data (training, validation, test): which samples it has and how one of them becomes a row of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "core/exec/interfaces/batch_source.h"
#include "core/metrics/target_form.h"
#include "io/datasets/dataset.h"
#include "io/loader/cache.h"
#include "io/loader/order.h"
#include "io/loader/transform.h"

namespace trainctl {

enum class OnError { stop, skip };

class DataPart {
 public:
  struct Options {
    std::uint64_t seed = 0;  // of augmentation
    OnError on_error = OnError::stop;
    bool cache = false;
  };
  // Memory of one thread.
  struct Scratch {
    Sample sample;
    Transform::Scratch transform;
  };
  // Where one sample goes. Input: as input_dtype() says. Target: as target_type(form) says.
  struct Row {
    std::byte* input = nullptr;
    std::byte* target = nullptr;
    float* weights = nullptr;  // as many as weight_count()
    TargetForm form = TargetForm::class_number;
  };

  DataPart(std::shared_ptr<const Dataset> dataset, Subset subset, std::shared_ptr<const Transform> transform,
           const Options& options);

  const Dataset& dataset() const { return *dataset_; }
  const Subset& subset() const { return subset_; }
  std::int64_t size() const { return subset_.size(); }
  const Shape& sample_shape() const { return transform_->output_shape(); }
  DType input_dtype() const { return transform_->output_dtype(); }
  TensorType input_type() const { return {sample_shape(), input_dtype()}; }
  // Of one sample's target in a form that the data set's targets can have.
  TensorType target_type(TargetForm form) const;

  // Of one sample: 1, or one for each of its positions.
  std::int64_t weight_count() const { return dataset_->facts().weight.count(); }

  // Reads sample `number` of the data set. With on_error skip a sample that cannot be read gets weight 0, zeros, and
  // the first time a warning.
  void read(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row) const;

 private:
  void read_whole(std::int64_t number, bool training, std::int64_t epoch, Scratch& scratch, const Row& row) const;
  void write_target(std::int64_t number, const float* values, const Row& row) const;
  void warn_once(std::int64_t number, const Error& error) const;

  std::shared_ptr<const Dataset> dataset_;
  Subset subset_;
  std::shared_ptr<const Transform> transform_;
  Options options_;
  std::int64_t prepared_bytes_ = 0;
  std::unique_ptr<SampleCache> cache_;  // rows: the prepared values, then the target's values
  mutable std::mutex skipped_mutex_;
  mutable std::set<std::int64_t> skipped_;  // samples that were warned of
};

}  // namespace trainctl
