// The transforms of one input, put together from the config's lists.
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
  bool stored = true;  // samples stay in their stored type: bytes, which the device scales, or tokens
};

// The plan of the input `name`, for samples of these info, which all splits' data sets store in `stored` types. Throws
// Error{config} where a step cannot be applied.
InputPlan plan_input(const DataOptions& options, const DatasetInfo& info, const std::vector<DType>& stored,
                     const std::string& name, StatisticsSource& statistics);

// The plan of an input of a trained network, from the config and what the run kept, for samples that are stored in this
// dtype. Throws Error{data} if the run lacks what `normalize: measured` measured.
InputPlan kept_plan(const DataOptions& options, const std::string& name, const KeptInput& kept, DType stored);

// The transform of a data set's samples that the plan makes, of the training split's stored shape.
std::shared_ptr<const Transform> transform_of(const InputPlan& plan, const Shape& stored, DType dtype);

// The format of bytes that the device scales. Throws Error{config} where the affine map has another number of channels.
SampleFormat byte_format(const Affine& affine, const Shape& sample);

}  // namespace trainctl
