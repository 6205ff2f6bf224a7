// One rank of a mesh, ready to train, for tests that run ranks on threads, and whole tensors put together from the
// ranks' shards.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "core/layers/model/model.h"
#include "parallel/mesh/axes.h"
#include "parallel/strategies/op_cost.h"
#include "parallel/strategies/pipeline/stages.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/initial_weights.h"
#include "test/core/program/job.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl {

// The strategy with the stages of its pipeline, if it has one: those given by its options, or balanced ones.
inline Strategy with_stages(const TestJob& job, Strategy strategy) {
  if (strategy.mesh.pipeline == 1) return strategy;
  Reader reader;
  const Graph graph = build_model(job.model, {.inputs = job.spec.inputs}, reader).graph;
  strategy.stages = assign_stages(graph, strategy.options, strategy.mesh.pipeline, byte_costs_of_processor, reader);
  reader.throw_if_failed();
  return strategy;
}

inline RunPrograms programs_on(const TestJob& job, const Strategy& strategy, const BatchSizes& sizes, int rank) {
  Reader reader;
  RunPrograms programs(job.spec, strategy, sizes, rank, reader);
  reader.throw_if_failed();
  return programs;
}

// A rank whose engine holds the initial weights. All ranks run the same kernels, in every mesh.
struct RankOfMesh {
  RunPrograms programs;
  std::unique_ptr<Backend> backend = make_cpu_backend({});
  MeshAxes axes;
  Engine engine;

  RankOfMesh(const TestJob& job, const Strategy& strategy, const BatchSizes& sizes, Communicator& world,
             std::uint64_t seed = 5)
      : programs(programs_on(job, strategy, sizes, world.rank())),
        axes(world, strategy.mesh, true),
        engine(*backend, axes.communicators(), compiled(programs, *backend)) {
    initialize_weights(job.spec, seed, engine.weights());
    engine.upload();
  }

 private:
  static Compiled compiled(const RunPrograms& programs, Backend& backend) {
    KernelChoices choices;
    choices.stop_timing();
    return compile(programs.programs(), backend, choices);
  }
};

// Runs all ranks of the mesh; throws the error of the first rank that failed.
inline void on_mesh(const Mesh& mesh, const std::function<void(Communicator&)>& run) {
  for (const std::string& error : on_threads(mesh.ranks(), run)) {
    if (!error.empty()) throw std::runtime_error(error);
  }
}

using WholeTensors = std::map<std::string, std::vector<float>>;

// Copies the tensors of a rank into the whole tensors, whose elements are NaN until a rank sets them. Throws if another
// rank has set other values.
inline void put_together(std::span<const NamedTensor> held, WholeTensors& whole) {
  for (const NamedTensor& tensor : held) {
    std::vector<float>& values = whole[tensor.name];
    values.resize(static_cast<std::size_t>(tensor.shape.count()), std::nanf(""));
    const std::vector<float> before = values;
    copy_common(tensor.shape, tensor.extent, tensor.view, TensorExtent(),
                {values.data(), DType::float32, tensor.shape.count()});
    const auto agrees = [](float old, float value) { return std::isnan(old) || old == value; };
    require(std::equal(before.begin(), before.end(), values.begin(), agrees),
            "replicas hold the same bits: " + tensor.name);
  }
}

// The largest absolute difference; infinite if the sizes differ or a value is NaN.
inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::max(largest, std::isnan(difference) ? INFINITY : difference);
  }
  return largest;
}

}  // namespace trainctl
