// Groups gradients into buckets. The reduction of a bucket over the data axis begins as soon as the backward pass has
// completed the bucket.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Divides the gradients, in backward order, into buckets; a bucket ends with the gradient that fills it. The gradients
// of parameters that the same stages of a pipeline share form one bucket, which is equal on all of these stages. Sizes
// are in bytes; the first bucket has its own size.
std::vector<std::vector<TensorId>> gradient_buckets(const ParameterLayout& layout, std::int64_t first_bytes,
                                                    std::int64_t bytes);
// Uses the bucket sizes of the strategy's options.
std::vector<std::vector<TensorId>> gradient_buckets(const ParameterLayout& layout, const StrategyOptions& options);

// Divides each bucket into one with the gradients of matrices and filters and one with those of vectors, and reorders
// the layout's parameters accordingly. `tensors`: the program's tensors.
void separate_vectors(std::vector<std::vector<TensorId>>& buckets, ParameterLayout& layout,
                      const std::vector<Tensor>& tensors);
// Whether a parameter is a vector or a scalar, such as a bias.
inline bool is_vector(const Tensor& parameter) { return parameter.type.shape.rank() < 2; }

// Adds a bucket as a tensor of role gradient with these members, named, for example, "bucket 2"; finish_training sets
// its offset and size.
TensorId add_bucket(Program& program, std::vector<TensorId> gradients, std::size_t number);

// Returns the number of elements of a bucket with these gradients, including the gaps between the gradients and after
// the last one.
std::int64_t elements_of(const Program& program, const std::vector<TensorId>& gradients);

// Returns the segment of the last micro-batch's backward pass, which is copied if earlier micro-batches run it too.
Segment& last_backward(Program& program);

// Returns the ops to insert after the op that completes a bucket; `bucket` is its number.
using OpsOfBucket = std::function<std::vector<Op>(std::size_t bucket)>;

// Inserts ops after the op of the segment that completes all members of a bucket, bucket by bucket in order.
void insert_after(const Program& program, const std::vector<TensorId>& buckets, const OpsOfBucket& ops,
                  Segment& segment);

// Creates the wait for the asynchronous collective that writes the tensor.
Op wait_for(const Program& program, TensorId tensor);

}  // namespace trainctl
