// Opens the samples for prediction.
#include "io/loader/prediction_data.h"

#include <algorithm>

#include "io/datasets/tables/csv_table.h"
#include "io/loader/batches/loader.h"
#include "io/loader/inputs/input_plan.h"
#include "io/loader/splits/make_split.h"
#include "io/loader/splits/split.h"

namespace trainctl {
namespace {

// Returns the info of the training split without targets and weights.
DatasetInfo info_without_targets(const DatasetInfo& kept) {
  DatasetInfo info = kept;
  if (!info.table) return info;
  TableInfo table = *info.table;
  table.targets.clear();
  table.weight.clear();
  info.table = std::make_shared<const TableInfo>(std::move(table));
  return info;
}

}  // namespace

PredictionData::PredictionData(const DataOptions& options, const std::vector<KeptInput>& kept,
                               const std::vector<DataUse::Input>& inputs, const std::vector<std::string>& paths)
    : options_(options), paths_(paths) {
  std::vector<DatasetInfo> training;
  for (const KeptInput& input : kept) training.push_back(info_without_targets(input.info));
  std::vector<NamedInfo> declared;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    DeclaredInfo info;
    info.sample = training[i].sample;
    info.training = &training[i];
    info.use.tokens = inputs[i].tokens;
    info.skip_unreadable = options.on_error == OnError::skip;
    declared.push_back({inputs[i].name, info});
  }
  const auto datasets = options.dataset.as<DatasetOptions>().open_all_inputs(paths, declared);
  std::vector<DataSplit::Input> read;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DatasetInfo& info = datasets[i]->info();
    if (!info.warning.empty()) warnings_.push_back(info.warning);
    InputPlan plan = kept_plan(options, inputs[i].name, kept[i], info.dtype);
    plan.stored = info.dtype == DType::int32;
    check_alike(*datasets[i], training[i].sample, plan.plan.fixed);
    if (i == 0 && info.dtype == DType::uint8) scaling_ = plan.plan.affine;
    const auto transform = transform_of(plan, training[i].sample, info.dtype);
    inputs_.push_back(
        {inputs[i].name, transform->output_shape(), {plan.stored ? DType::int32 : DType::float32, {}, {}}});
    read.push_back({datasets[i], transform});
  }
  named_ = datasets[0];
  split_ = std::make_shared<const DataSplit>(std::move(read), DataSplit::Targets{}, Subset::all(named_->size()),
                                             DataSplit::Options{.on_error = options.on_error, .skip_non_finite = true});
}

std::int64_t PredictionData::samples() const { return split_->size(); }

std::string PredictionData::name_of(std::int64_t sample) const {
  return named_->holds_files() ? named_->name_of(sample) : std::to_string(sample);
}

std::string PredictionData::short_name_of(std::int64_t sample) const {
  const std::string name = name_of(sample);
  for (std::string folder : paths_) {
    if (!folder.ends_with('/')) folder += '/';
    if (name.starts_with(folder)) return name.substr(folder.size());
  }
  return name.substr(name.rfind('/') + 1);
}

std::unique_ptr<BatchSource> PredictionData::batches(std::int64_t batch_size, const BatchDivision& division, int cores,
                                                     const AllocateBatch& allocate) const {
  const int workers = options_.workers.or_else(std::clamp(cores, 1, 16));
  return make_loader(
      split_,
      {batch_size, division, {}, false, false, workers, options_.workers.is_auto(), options_.prefetch, {}, allocate});
}

}  // namespace trainctl
