// Making silent communicators, and the count of samples that a stage lacks.
#include "parallel/plan/measured/silent_axes.h"

#include <functional>

#include "core/graph/ops/collectives.h"
#include "parallel/comm/silent.h"

namespace trainctl {
namespace {

// Writes the count of samples into the results that the stages of a pipeline add up.
std::function<void(View)> count_of_last_stage(const PlacedProgram& program, Backend& backend) {
  return [&program, &backend](View results) {
    const TensorId count = program.program.step.count;
    if (count == no_tensor) return;
    const PlacedTensor& place = program.tensor(count);
    for (const PlacedSegment& segment : program.segments) {
      for (const PlacedOp& op : segment.ops) {
        const auto* reduce = op.op.get_if<AllReduce>();
        if (reduce == nullptr || reduce->axis != MeshAxis::pipeline) continue;
        const PlacedTensor& bucket = program.tensor(op.op.outputs[0]);
        const std::int64_t offset = place.offset - bucket.offset;
        if (bucket.region != place.region || offset < 0 || offset >= results.bytes()) continue;
        if (program.program.tensor(op.op.outputs[0]).type.shape.count() != results.count) continue;
        const auto samples = static_cast<float>(program.program.micro_batch_samples * program.program.micro_batches);
        const auto stream = backend.compute_stream();
        backend.copy(results.as<std::byte>() + offset, &samples, sizeof samples, *stream);
        stream->synchronize();
      }
    }
  };
}

}  // namespace

SilentAxes::SilentAxes(const MeshRank& rank, const PlacedProgram& program, Backend& backend, Communicator& memory) {
  for (const MeshAxis axis : all_mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    const bool alone = rank.mesh.ranks() == 1 && axis == MeshAxis::data;
    if (rank.size(axis) == 1 && !alone) continue;
    const bool counts = axis == MeshAxis::pipeline;
    owned_[a] = silent_communicator(rank.along(axis), rank.size(axis), backend, memory,
                                    counts ? count_of_last_stage(program, backend) : std::function<void(View)>());
    axes_[a] = owned_[a].get();
  }
}

}  // namespace trainctl
