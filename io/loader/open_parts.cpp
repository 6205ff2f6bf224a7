// Opens the parts of the data.
#include "io/loader/open_parts.h"

#include <algorithm>

#include "core/base/format.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

const DatasetOptions& dataset_of(const DataOptions& options) { return options.dataset.as<DatasetOptions>(); }

// The split of the training samples; where it is stratified, `classes` has the classes, if anything has.
Subset::Split split_off(const ValidationOptions& validation, std::int64_t samples, const Dataset* classes,
                        std::uint64_t seed) {
  if (!validation.stratify || !classes) return Subset::split(samples, *validation.split, seed);
  return Subset::stratified(
      samples, [&](std::int64_t i) { return classes->label(i); }, *validation.split, seed);
}

bool has_classes(const Dataset& target) { return target.facts().classes > 0 && target.facts().target.rank() == 0; }

// Throws Error{data} if a data set has a name that is not UTF-8.
DatasetGroup with_utf8_names(const StatedLocation& where, DatasetGroup group) {
  const std::string path = where.pieces()[0].path.text;
  for (const Dataset* dataset : group.distinct()) require_utf8_facts(path, dataset->facts());
  return group;
}

DatasetGroup open_training(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  const bool several = use.inputs.size() > 1 || use.targets.size() > 1;
  if (several && !dataset_of(options).holds_several()) {
    throw Error(ErrorKind::config, options.dataset.place,
                format("the model has {} inputs and {} outputs, and {} holds one of each", use.inputs.size(),
                       use.targets.size(), options.dataset.name),
                "npy takes several: x: {NAME: FILE, ...} and y: {NAME: FILE, ...}");
  }
  const bool skips = options.on_error == OnError::skip;
  StatedGroup stated{{}, {}, use};
  for (const DataUse::Input& input : use.inputs) {
    stated.inputs.push_back({stated_shape(options, input.name), {}, nullptr, {.tokens = input.tokens}, skips});
  }
  for (const DataUse::Target& target : use.targets) {
    stated.targets.push_back(
        {{}, stated_classes(options, target.name), nullptr, {target.values, target.class_numbers, 0}, skips});
    stated.targets.back().target_is_input = options.target_is_input();
    if (!options.validation || !options.validation->split) continue;
    stated.targets.back().trained_on = [&](const Dataset& dataset) {
      const Subset training =
          split_off(*options.validation, dataset.size(), has_classes(dataset) ? &dataset : nullptr, seed).training;
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < training.size(); ++i) samples.push_back(training[i]);
      return samples;
    };
  }
  return with_utf8_names(dataset_of(options), dataset_of(options).open_pieces(dataset_of(options).pieces(),
                                                                              PartKind::training, stated, seed));
}

DatasetGroup open_held_out(const DataOptions& options, const StatedLocation& where, PartKind part,
                           const DatasetGroup& training, const DataUse& use, std::uint64_t seed) {
  const bool skips = options.on_error == OnError::skip;
  StatedGroup stated{{}, {}, use};
  for (std::size_t i = 0; i < use.inputs.size(); ++i) {
    const DatasetFacts& facts = training.inputs[i]->facts();
    stated.inputs.push_back({facts.sample, {}, &facts, {.tokens = use.inputs[i].tokens}, skips});
  }
  for (std::size_t i = 0; i < use.targets.size(); ++i) {
    // The training part decides whether whole numbers are classes or values.
    const DatasetFacts& facts = training.targets[i]->facts();
    stated.targets.push_back({{}, {}, &facts, {.class_numbers = use.targets[i].class_numbers}, skips});
    stated.targets.back().target_is_input = options.target_is_input();
  }
  return with_utf8_names(where, dataset_of(options).open_pieces(where.pieces(), part, stated, seed));
}

}  // namespace

std::optional<Shape> stated_shape(const DataOptions& options, const std::string& input) {
  const auto* shape = options.shape ? options.shape->find(input) : nullptr;
  return shape ? std::optional(Shape(*shape)) : std::nullopt;
}

std::optional<std::int64_t> stated_classes(const DataOptions& options, const std::string& output) {
  const std::int64_t* classes = options.classes ? options.classes->find(output) : nullptr;
  return classes ? std::optional(*classes) : std::nullopt;
}

OpenedParts open_parts(const DataOptions& options, std::uint64_t seed, const DataUse& use) {
  OpenedParts parts;
  const DatasetGroup training = open_training(options, seed, use);
  parts[0] = {training, Subset::all(training.size())};
  if (options.validation && options.validation->split) {
    const auto labelled = std::find_if(training.targets.begin(), training.targets.end(),
                                       [](const auto& target) { return has_classes(*target); });
    const Dataset* classes = labelled == training.targets.end() ? nullptr : labelled->get();
    const Subset::Split split = split_off(*options.validation, training.size(), classes, seed);
    parts[0]->subset = split.training;
    parts[1] = {training, split.validation};
  } else if (options.validation) {
    parts[1].emplace();
    parts[1]->group = open_held_out(options, *options.validation, PartKind::validation, training, use, seed);
    parts[1]->subset = Subset::all(parts[1]->group.size());
  }
  if (options.test) {
    parts[2].emplace();
    parts[2]->group = open_held_out(options, *options.test, PartKind::test, training, use, seed);
    parts[2]->subset = Subset::all(parts[2]->group.size());
  }
  return parts;
}

}  // namespace trainctl
