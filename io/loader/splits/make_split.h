// Makes a split of the data from its data sets and the plans of its inputs.
#pragma once

#include <memory>
#include <vector>

#include "io/loader/splits/open_splits.h"

namespace trainctl {

class DataSplit;
class Mixing;
struct GeometryStep;
struct InputPlan;
struct SampleClassWeights;
struct TransformPlan;

// Checks that the first sample of a data set has the same shape after the `fixed` transforms as samples of the training
// split, which are stored in the shape `training`. Otherwise throws Error{data} that names the sample.
void check_alike(const Dataset& dataset, const Shape& training, const std::vector<GeometryStep>& fixed);

// Whether a cache saves time: it does not if all samples are in memory and need no fixed transforms.
bool caching_pays(const DataOptions& options, const DatasetGroup& group, const std::vector<InputPlan>& inputs);

// Returns the mixing of the training split's samples; null if they are not mixed. Throws Error{config} if they cannot
// be mixed.
std::shared_ptr<const Mixing> mixing_of(const DataOptions& options, const std::vector<InputPlan>& plans,
                                        const DatasetGroup& training);

// Makes a split of a run; `training` are the data sets of its training split, and `target_plan` is the plan of targets
// that are images (null for other targets). If samples are not to be read (`reads`), a disk cache is not made: only its
// space is checked. Throws Error{data} if the first sample has another shape than the training split's samples,
// Error{config} or {resource} if there is no folder or no space for a cache.
std::shared_ptr<const DataSplit> make_split(const DataOptions& options, std::uint64_t seed, const OpenedSplit& split,
                                            const DatasetGroup& training, const std::vector<InputPlan>& plans,
                                            const TransformPlan* target_plan, SampleClassWeights class_weights,
                                            std::shared_ptr<const Mixing> mixing, bool reads);

}  // namespace trainctl
