// Builds the programs of a network that predicts, chooses its kernels and loads its weights.
#include "run/prediction/predictor.h"

#include "core/compile/lower.h"
#include "core/program/network.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/comm/communicators.h"
#include "run/job/device.h"
#include "run/job/kept_kernels.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

ProgramSpec without_losses(const RunSpec& spec, const std::vector<ModelInput>& inputs) {
  ProgramSpec program;
  program.model = &spec.model;
  program.inputs = inputs;
  program.outputs.clear();
  for (const std::string& name : output_names(spec.model)) program.outputs.emplace_back().name = name;
  program.compute = spec.train.compute();
  program.seed = spec.seed;
  return program;
}

}  // namespace

Predictor::Predictor(const RunSpec& spec, const std::vector<ModelInput>& inputs, const BatchSource& source,
                     const BatchDivision& division, RankDevice& device, const RestoreSource& stored, World& world)
    : device_(device),
      world_(world),
      programs_(prediction_programs(without_losses(spec, inputs), source, division)),
      alone_(solo_communicator(*device.backend)) {
  KernelChoices choices = kept_kernels(spec, *device.backend);
  engine_ = std::make_unique<Engine>(*device.backend, *alone_, compile(programs_.programs, *device.backend, choices));
  restore_weights(stored, *engine_, world.communicator(), device.host);
}

std::vector<Shape> Predictor::outputs() const {
  const Program& program = engine_->program(0).program;
  std::vector<Shape> shapes;
  for (const TensorId id : program.step.predictions) {
    shapes.push_back(program.tensor(id).type.shape.without_front());
  }
  return shapes;
}

void Predictor::run(BatchSource& source, const std::function<bool(const Predictions&)>& take) {
  predict(*engine_, programs_, source, world_.communicator(), device_.host, take);
}

}  // namespace trainctl
