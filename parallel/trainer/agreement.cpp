// Collects the values that must be equal on all ranks, and broadcasts the kernel choices of rank 0.
#include "parallel/trainer/agreement.h"

#include "core/backend/choice_changes.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/compile/compile.h"
#include "core/program/dump.h"
#include "parallel/comm/text.h"
#include "parallel/strategies/programs.h"

namespace trainctl {

RankValues job_values(const DataInfo& data, const Backend& backend, const std::vector<Program>& programs) {
  const auto of = [](const std::string& name) { return name.empty() ? "" : format(" of '{}'", name); };
  RankValues values = {{"the device", std::string(backend.name())},
                       {"the number of training samples", std::to_string(data.training_samples)},
                       {"the number of validation samples", std::to_string(data.validation_samples)},
                       {"the data's fingerprint", data.fingerprint}};
  for (const ModelInput& input : data.inputs) {
    values.emplace_back("the shape of samples" + of(input.name), to_string(input.sample));
  }
  for (std::size_t t = 0; t < data.targets.size(); ++t) {
    const TargetInfo& target = data.targets[t];
    const std::string which = t == 0 ? "" : format(" of output {}", t + 1);
    values.emplace_back("the shape of targets" + which, to_string(target.shape));
    values.emplace_back("the number of classes" + which, std::to_string(target.classes));
    for (std::size_t i = 0; i < target.class_names.size(); ++i) {
      values.emplace_back(format("class {}{}", i, which), target.class_names[i]);
    }
  }
  for (const Program& program : programs) {
    const std::string text = dump(program);
    values.emplace_back(format("the program '{}'", program.name), format("{:016x}", xxh3(text.data(), text.size())));
  }
  return values;
}

AgreedKernels agree_on_kernels(KernelChoices& choices, const std::vector<RunPrograms>& programs, Backend& backend,
                               Communicator& world, Stream& stream) {
  AgreedKernels agreed;
  if (world.rank() == 0) {
    // The first program of a training run is the program of a full batch. Programs of other batches, such as evaluation
    // batches, depend on the number of ranks and are not part of the hash.
    for (const RunPrograms& own : programs) compile({own.programs().front()}, backend, choices);
    agreed.hash = kernel_hash(backend.fingerprint(), choices.used().text());
    for (const RunPrograms& own : programs) compile(own.programs(), backend, choices);
  }
  agreed.hash = broadcast_text(agreed.hash, 0, world, stream);
  agreed.choices.add(broadcast_text(choices.used().text(), 0, world, stream));
  return agreed;
}

}  // namespace trainctl
