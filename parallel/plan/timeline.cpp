// Converts simulated events to trace events.
#include "parallel/plan/timeline.h"

#include <cstddef>

#include "core/base/format.h"
#include "parallel/bench/timeline.h"
#include "parallel/plan/prediction.h"

namespace trainctl {
namespace {

// Returns 0 for computation, then one number for each axis.
int thread_of(const SimulatedEvent& event) { return event.axis ? 1 + static_cast<int>(*event.axis) : 0; }

std::string stage_name(const Prediction& prediction, int stage) {
  const Mesh& mesh = prediction.mesh();
  const int ranks_per_stage = mesh.ranks() / mesh.pipeline;
  const std::string ranks = ranks_per_stage == 1 ? "one rank" : format("{} equal ranks", ranks_per_stage);
  return mesh.pipeline == 1 ? ranks : format("stage {}: {}", stage, ranks);
}

}  // namespace

std::string timeline_of(const Prediction& prediction) {
  std::vector<std::string> elements;
  for (int s = 0; s < prediction.mesh().pipeline; ++s) {
    elements.push_back(trace_process_name(s, stage_name(prediction, s)));
    elements.push_back(trace_thread_name(s, 0, "compute"));
    for (const MeshAxis axis : all_mesh_axes) {
      if (prediction.mesh().size(axis) == 1) continue;
      elements.push_back(trace_thread_name(s, 1 + static_cast<int>(axis), format("{} axis", name_of(axis))));
    }
  }
  for (const SimulatedEvent& event : prediction.step.timeline) {
    const PlacedSegment& placed =
        prediction.stages[static_cast<std::size_t>(event.stage)].training.segment(event.item.segment);
    const std::string segment(name_of(placed.phase, placed.variant));
    elements.push_back(to_trace({format("{} {}", event.op->def->kind(), event.op->name),
                                 segment,
                                 event.stage,
                                 thread_of(event),
                                 event.start,
                                 event.end,
                                 {{"segment", segment},
                                  {"micro-batch", std::to_string(event.item.micro_batch)},
                                  {"attributes", event.op->def->attributes()}}}));
  }
  return trace_document(elements);
}

}  // namespace trainctl
