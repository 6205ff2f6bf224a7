// Programs, kernels and weights of a network that predicts.
#include "cmd/predict/predictor.h"

#include "core/base/format.h"
#include "core/compile/lower.h"
#include "io/kernels/kernel_cache.h"
#include "parallel/comm/solo.h"

namespace trainctl {
namespace {

ProgramSpec without_losses(const RunSpec& spec, const ModelInput& input) {
  ProgramSpec program;
  program.model = &spec.model;
  program.inputs = {input};
  program.compute = spec.train.compute();
  program.seed = spec.seed;
  return program;
}

}  // namespace

Predictor::Predictor(const RunSpec& spec, const ModelInput& input, const BatchSource& source, const Sharer& rank,
                     RankDevice& device, const RestoreSource& stored, World& world)
    : device_(device),
      world_(world),
      programs_(prediction_programs(without_losses(spec, input), source, rank)),
      alone_(solo_communicator(*device.backend)) {
  const Program& program = programs_.programs[0];
  const Shape& shape = program.tensor(program.step.predictions[0]).type.shape;
  if (shape.rank() > 2) {
    throw CollectiveError(ErrorKind::config,
                          format("the network ends in {} for a sample, and predict is for classes or values of whole "
                                 "samples",
                                 to_string(shape.without_front())),
                          "`trainctl eval` measures such a network");
  }
  KernelChoices choices = load_kernel_choices(device.backend->fingerprint());
  engine_ = std::make_unique<Engine>(*device.backend, *alone_, compile(programs_.programs, *device.backend, choices));
  restore_weights(stored, *engine_, world.communicator(), device.host);
}

std::int64_t Predictor::outputs() const {
  const Program& program = programs_.programs[0];
  const Shape& shape = program.tensor(program.step.predictions[0]).type.shape;
  return shape.count() / shape[0];
}

void Predictor::run(BatchSource& source, const std::function<bool(const Predictions&)>& take) {
  predict(*engine_, programs_, source, world_.communicator(), device_.host, take);
}

}  // namespace trainctl
