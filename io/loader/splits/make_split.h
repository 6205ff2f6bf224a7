// A split of the data put together from its data sets and the plans of its inputs.
#pragma once

#include <memory>
#include <vector>

#include "io/loader/splits/open_splits.h"

namespace trainctl {

class DataSplit;
class Mixing;
struct GeometryStep;
struct InputPlan;

// Checks that the first sample of a data set has the same shape after the transforms as samples of the training split,
// which are stored in the shape `training`. Throws Error{data} that names the sample.
void check_alike(const Dataset& dataset, const Shape& training, const std::vector<GeometryStep>& fixed);

// Whether a cache saves time: not where all samples are in memory as batches need them.
bool caching_pays(const DataOptions& options, const DatasetGroup& group, const std::vector<InputPlan>& inputs);

// What mixes the samples of the training split; null where nothing does. Throws Error{config} where they cannot be
// mixed.
std::shared_ptr<const Mixing> mixing_of(const DataOptions& options, const std::vector<InputPlan>& plans,
                                        const DatasetGroup& training);

// Makes a split of the run whose training split has the data sets `training`. Where samples are not to be read
// (`reads`), a disk cache is only asked whether there is room for it. Throws Error{data} where the first sample is not
// like those of the training split, Error{config} or {resource} where there is no place for a cache.
std::shared_ptr<const DataSplit> make_split(const DataOptions& options, std::uint64_t seed, const OpenedSplit& split,
                                            const DatasetGroup& training, const std::vector<InputPlan>& plans,
                                            std::vector<float> class_weights, std::shared_ptr<const Mixing> mixing,
                                            bool reads);

}  // namespace trainctl
