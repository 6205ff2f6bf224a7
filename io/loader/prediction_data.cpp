// Opening samples to predict.
#include "io/loader/prediction_data.h"

#include <algorithm>

#include "io/datasets/tables/csv_table.h"
#include "io/loader/kept_plan.h"
#include "io/loader/loader.h"
#include "io/loader/make_part.h"

namespace trainctl {
namespace {

// What opening the training part would state for others, without targets.
DatasetFacts facts_without_targets(const DatasetFacts& kept) {
  DatasetFacts facts = kept;
  if (!facts.table) return facts;
  TableFacts table = *facts.table;
  table.targets.clear();
  table.weight.clear();
  facts.table = std::make_shared<const TableFacts>(std::move(table));
  return facts;
}

}  // namespace

PredictionData::PredictionData(const DataOptions& options, const KeptInput& kept, const DataUse::Input& input,
                               const std::vector<std::string>& paths)
    : options_(options) {
  const DatasetFacts training = facts_without_targets(kept.facts);
  StatedFacts stated;
  stated.sample = training.sample;
  stated.training = &training;
  stated.use.tokens = input.tokens;
  stated.skip_unreadable = options.on_error == OnError::skip;
  dataset_ = options.dataset.as<DatasetOptions>().open_inputs(paths, stated);
  InputPlan plan = kept_plan(options, input.name, kept, dataset_->facts().dtype);
  plan.stored = dataset_->facts().dtype == DType::int32;
  check_alike(*dataset_, training.sample, plan.plan.fixed);
  const auto transform = transform_of(plan, training.sample, dataset_->facts().dtype);
  input_.name = input.name;
  input_.sample = transform->output_shape();
  input_.format.dtype = plan.stored ? DType::int32 : DType::float32;
  part_ = std::make_shared<const DataPart>(std::vector<DataPart::Input>{{dataset_, transform}}, DataPart::Targets{},
                                           Subset::all(dataset_->size()), DataPart::Options{0, options.on_error});
}

std::string PredictionData::name_of(std::int64_t sample) const {
  return dataset_->in_memory() ? std::to_string(sample) : dataset_->name_of(sample);
}

std::unique_ptr<BatchSource> PredictionData::batches(std::int64_t batch_size, const Sharer& rank, int cores,
                                                     const AllocateBatch& allocate) const {
  const int workers = options_.workers.or_else(std::clamp(cores, 1, 16));
  return make_loader(
      part_,
      {batch_size, rank, {}, false, false, workers, options_.workers.is_auto(), options_.prefetch, {}, allocate});
}

}  // namespace trainctl
