// The plan of one input's transforms, made from the config's lists.
#pragma once

#include <string>
#include <vector>

#include "io/loader/images/transform_options.h"

namespace trainctl {

struct DataOptions;
struct KeptInput;
struct SampleFormat;

struct InputPlan {
  TransformPlan plan;
  bool stored = true;  // samples keep their stored type: bytes, which the device scales, or tokens
};

// Makes the plan of the input `name`. `info` is the info of the training split, and `stored` are the types in which the
// data sets of all splits store the input. Throws Error{config} if a step cannot be applied.
InputPlan plan_input(const DataOptions& options, const DatasetInfo& info, const std::vector<DType>& stored,
                     const std::string& name, StatisticsSource& statistics);

// Makes the plan of an input of a trained network, from the config and the values that the run kept, for samples that
// are stored in the dtype `stored`. Throws Error{data} if the statistics of `normalize: measured` are missing.
InputPlan kept_plan(const DataOptions& options, const std::string& name, const KeptInput& kept, DType stored);

// Makes the plan of targets that are images (DatasetInfo::image_targets) of the input `name`, whose plan is given; the
// infos are those of the training split. The plan has the steps of `target_transform` or, without it, those of
// `transform`, and then the steps of `augment` that move pixels, with the same random numbers. Throws Error{config} if
// a step cannot be applied, or if random crops of images and targets cannot show the same part.
TransformPlan plan_targets(const DataOptions& options, const std::string& name, const DatasetInfo& images,
                           const TransformPlan& of_images, const DatasetInfo& targets, StatisticsSource& statistics);

// Returns the map from stored values to values of targets that are images, from the config and the values that the run
// kept.
Affine kept_target_scaling(const DataOptions& options, const std::string& name, const KeptInput& kept);

// Makes the transform of the plan for samples of a data set; `stored` is the stored shape of the training split's
// samples.
std::shared_ptr<const Transform> transform_of(const InputPlan& plan, const Shape& stored, DType dtype);

// Returns the format of bytes that the device scales. Throws Error{config} if the affine map has another number of
// channels.
SampleFormat byte_format(const Affine& affine, const Shape& sample);

}  // namespace trainctl
