// Gradients in buckets, whose reduction over the data axis begins as soon as the backward pass has completed them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// The gradients in backward order, cut into buckets, each of which closes with the gradient that fills it. Those of
// parameters that the same stages of a pipeline share are one bucket, equal on all of these stages. Sizes in bytes.
std::vector<std::vector<TensorId>> gradient_buckets(const ParameterLayout& layout, std::int64_t first_bytes,
                                                    std::int64_t bytes);
// With the sizes of the strategy's options.
std::vector<std::vector<TensorId>> gradient_buckets(const ParameterLayout& layout, const StrategyOptions& options);

// Adds a bucket as a tensor of role gradient with these members, named "bucket 2"; finish_training gives it its place
// and size.
TensorId add_bucket(Program& program, std::vector<TensorId> gradients, std::size_t number);

// The elements of a bucket with these gradients, gaps between them and behind the last one included.
std::int64_t elements_of(const Program& program, const std::vector<TensorId>& gradients);

// The segment of the last micro-batch's backward pass, a copy of its own where earlier micro-batches run it too.
Segment& last_backward(Program& program);

// The ops that are put behind the op which completes a bucket; `bucket` is its number.
using OpsOfBucket = std::function<std::vector<Op>(std::size_t bucket)>;

// Puts ops behind the op of the segment that completes all members of a bucket, bucket by bucket in their order.
void insert_behind(const Program& program, const std::vector<TensorId>& buckets, const OpsOfBucket& ops,
                   Segment& segment);

// The wait for an asynchronous collective whose output the tensor is.
Op wait_for(const Program& program, TensorId tensor);

}  // namespace trainctl
