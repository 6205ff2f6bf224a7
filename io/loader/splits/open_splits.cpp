// Opens the splits of the data.
#include "io/loader/splits/open_splits.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/utf8_names.h"
#include "io/loader/options.h"

namespace trainctl {
namespace {

const DatasetOptions& dataset_of(const DataOptions& options) { return options.dataset.as<DatasetOptions>(); }

// Splits samples off for validation: at random, or the last ones of a series. `classes` is a data set with classes, for
// stratified splits; null if there is none.
Subset::Split split_off(const ValidationOptions& validation, const Dataset& inputs, const Dataset* classes,
                        std::uint64_t seed) {
  const std::int64_t samples = inputs.size();
  if (const auto parts = inputs.split_by_time(*validation.split)) {
    if (validation.stratify) {
      throw Error(ErrorKind::config, "`stratify` chooses samples at random, but windows of a series are split by time",
                  "leave out `stratify`");
    }
    return {Subset::range(0, parts->training_end), Subset::range(parts->validation_begin, samples)};
  }
  Subset::Split split = !validation.stratify || !classes
                            ? Subset::split(samples, *validation.split, seed)
                            : Subset::stratified(
                                  samples, [&](std::int64_t i) { return classes->label(i); }, *validation.split, seed);
  if (samples > 0 && split.training.size() == 0) {
    throw Error(
        ErrorKind::config,
        format("`validation: {{split: {}}}` splits off {}, which leaves no sample of {} for training",
               *validation.split, counted(split.validation.size(), "sample"), grouped(samples)),
        samples == 1 ? "training and validation need at least one sample each" : "set a smaller split, such as 0.2");
  }
  return split;
}

bool has_classes(const Dataset& target) { return target.info().classes > 0 && target.info().target.rank() == 0; }

// Throws Error{data} if a data set has a name that is not UTF-8.
DatasetGroup with_utf8_names(const DataLocations& where, DatasetGroup group) {
  const std::string path = where.pieces()[0].path.text;
  for (const Dataset* dataset : group.distinct()) require_utf8_info(path, dataset->info());
  return group;
}

// Calls `open`, and adds the location of the data set to an error of the config that has none.
template <class Open>
auto located(const DataOptions& options, Open open) {
  try {
    return open();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config || error.location().known()) throw;
    throw Error(ErrorKind::config, options.dataset.location, error.what());
  }
}

DatasetGroup open_training(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  const DatasetOptions& dataset = dataset_of(options);
  if ((use.inputs.size() > 1 && !dataset.holds_several()) ||
      (use.targets.size() > 1 && !dataset.holds_several_outputs())) {
    throw Error(
        ErrorKind::config, options.dataset.location,
        format("the model has {} and {}, but {} supports only one {}", counted(use.inputs.size(), "input"),
               counted(use.targets.size(), "output"), options.dataset.name,
               dataset.holds_several() ? "output" : "of each"),
        options.dataset.name == "csv"
            ? "name the columns of each input and of each output: inputs: {NAME: [COLUMN, ...], ...} and targets: "
              "{NAME: COLUMN, ...}"
            : "npy supports several: x: {NAME: FILE, ...} and y: {NAME: FILE, ...}");
  }
  const bool skips = options.on_error == OnError::skip;
  DeclaredGroup declared{{}, {}, use};
  for (const DataUse::Input& input : use.inputs) {
    declared.inputs.push_back({declared_shape(options, input.name), {}, nullptr, {.tokens = input.tokens}, skips});
  }
  for (const DataUse::Target& target : use.targets) {
    declared.targets.push_back({{},
                                declared_classes(options, target.name),
                                nullptr,
                                {target.values, target.class_numbers, 0, target.ignored},
                                skips});
    declared.targets.back().target_is_input = options.target_is_input();
    declared.targets.back().target_unused = target.unused;
    declared.targets.back().cache_folder = options.cache_path.text;
    if (!options.validation || !options.validation->split) continue;
    declared.targets.back().trained_on = [&](const Dataset& opened) {
      const Subset training =
          split_off(*options.validation, opened, has_classes(opened) ? &opened : nullptr, seed).training;
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < training.size(); ++i) samples.push_back(training[i]);
      return samples;
    };
  }
  return with_utf8_names(dataset, dataset.open_pieces(dataset.pieces(), SplitKind::training, declared, seed));
}

DatasetGroup open_held_out(const DataOptions& options, const DataLocations& where, SplitKind split,
                           const DatasetGroup& training, const DataUse& use, std::uint64_t seed) {
  const bool skips = options.on_error == OnError::skip;
  DeclaredGroup declared{{}, {}, use};
  for (std::size_t i = 0; i < use.inputs.size(); ++i) {
    const DatasetInfo& info = training.inputs[i]->info();
    declared.inputs.push_back({info.sample, {}, &info, {.tokens = use.inputs[i].tokens}, skips});
  }
  for (std::size_t i = 0; i < use.targets.size(); ++i) {
    // The training split decides whether whole numbers are classes or values.
    const DatasetInfo& info = training.targets[i]->info();
    declared.targets.push_back(
        {{}, {}, &info, {.class_numbers = use.targets[i].class_numbers, .ignored = use.targets[i].ignored}, skips});
    declared.targets.back().target_is_input = options.target_is_input();
    declared.targets.back().target_unused = use.targets[i].unused;
    declared.targets.back().cache_folder = options.cache_path.text;
  }
  return with_utf8_names(where, dataset_of(options).open_pieces(where.pieces(), split, declared, seed));
}

}  // namespace

std::optional<Shape> declared_shape(const DataOptions& options, const std::string& input) {
  const auto* shape = options.shape ? options.shape->find(input) : nullptr;
  return shape ? std::optional(Shape(*shape)) : dataset_of(options).known_shape();
}

std::optional<std::int64_t> declared_classes(const DataOptions& options, const std::string& output) {
  const std::int64_t* classes = options.classes ? options.classes->find(output) : nullptr;
  return classes ? std::optional(*classes) : std::nullopt;
}

namespace {

OpenedSplits opened(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  OpenedSplits splits;
  const DatasetGroup training = open_training(options, seed, use);
  splits[0] = {training, Subset::all(training.size())};
  if (options.validation && options.validation->split) {
    const auto labelled = std::find_if(training.targets.begin(), training.targets.end(),
                                       [](const auto& target) { return has_classes(*target); });
    const Dataset* classes = labelled == training.targets.end() ? nullptr : labelled->get();
    const Subset::Split subsets = split_off(*options.validation, *training.inputs[0], classes, seed);
    if (options.validation->stratify && classes == nullptr) {
      throw Error(ErrorKind::config, options.dataset.location,
                  "`stratify: true` splits off the same share of every class, but the samples have no classes",
                  "leave out `stratify`");
    }
    splits[0]->subset = subsets.training;
    splits[1] = {training, subsets.validation};
  } else if (options.validation) {
    splits[1].emplace();
    splits[1]->group = open_held_out(options, *options.validation, SplitKind::validation, training, use, seed);
    splits[1]->subset = Subset::all(splits[1]->group.size());
  }
  if (options.test) {
    splits[2].emplace();
    splits[2]->group = open_held_out(options, *options.test, SplitKind::test, training, use, seed);
    splits[2]->subset = Subset::all(splits[2]->group.size());
  }
  for (auto& split : splits) {
    for (std::size_t i = 0; split && i < use.targets.size(); ++i) split->unused.push_back(use.targets[i].unused);
  }
  return splits;
}

}  // namespace

OpenedSplits open_splits(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  return located(options, [&] { return opened(options, seed, use); });
}

}  // namespace trainctl
