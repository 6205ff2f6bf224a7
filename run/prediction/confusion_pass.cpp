// Compares predictions with the targets of their batches.
#include "run/prediction/confusion_pass.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/interfaces/forwarded_source.h"
#include "core/tensor/sample_values.h"
#include "io/checkpoint/load.h"
#include "io/loader/data.h"
#include "io/loader/splits/split.h"
#include "io/pictures/picture.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/launch/ranks/run_rank.h"
#include "run/job/device.h"
#include "run/job/trained_network.h"
#include "run/prediction/meaning.h"
#include "run/prediction/predictor.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Returns the batches of another source, and remembers the last one.
class LastBatchKept final : public ForwardedSource {
 public:
  explicit LastBatchKept(BatchSource& source) : ForwardedSource(source) {}

  const Batch& last() const { return *last_; }

  const Batch& next() override { return *(last_ = &source_.next()); }

 private:
  const Batch* last_ = nullptr;
};

[[noreturn]] void refuse_values() {
  throw Error(ErrorKind::config, "--samples requires a network that predicts classes, and this one predicts values",
              "leave it out");
}

bool surer(const ConfusedSample& a, const ConfusedSample& b) { return a.probability > b.probability; }

}  // namespace

ConfusionPass confusion_pass(const RunSpec& spec, const std::string& run, std::size_t max_samples,
                             RankContext& context) {
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  const LoadedCheckpoint checkpoint = load_named_checkpoint(best_of_run(run));
  log::info(format("looks for misclassified samples with {} (step {})", checkpoint.path, checkpoint.manifest.step));
  const Data data(spec.data, spec.seed, data_use(spec));
  if (!data.has(SplitKind::validation))
    throw Error(ErrorKind::config, "--samples requires validation data, and the run has none");
  if (data.info().targets[0].classes == 0) refuse_values();
  const BatchDivision alone;
  const auto batches = data.evaluation(SplitKind::validation, spec.train.global_batch(1), alone, context.threads,
                                       {TargetEncoding::class_number});
  LastBatchKept source(*batches);
  const ModelInput& input = data.info().inputs[0];
  Predictor predictor(spec, {input}, source, alone, device,
                      {&checkpoint.snapshot, checkpoint.path, run + "/config.yaml"}, context.world);
  const OutputMeaning meaning = meaning_of(spec, 0, predictor.outputs()[0], {});
  if (!meaning.has_classes()) refuse_values();
  if (meaning.positions.rank() > 0) {
    throw Error(ErrorKind::config,
                "--samples requires a network that predicts the class of a sample, and this one predicts those "
                "of pixels or steps",
                "leave it out");
  }
  ConfusionPass pass;
  pass.matrix.assign(meaning.names.size(), std::vector<double>(meaning.names.size()));
  predictor.run(source, [&](const Predictions& found) {
    const auto* targets = static_cast<const std::int32_t*>(source.last().targets[0].data);
    for (std::int64_t i = 0; i < found.count; ++i) {
      const bool is_class = targets[i] >= 0 && targets[i] < std::ssize(pass.matrix);  // else the loss ignores it
      if (!is_class || found.weights[static_cast<std::size_t>(i)] == 0) continue;
      const std::vector<float> classes = meaning.values_of(found.of(0, i));
      const auto likeliest = std::max_element(classes.begin(), classes.end());
      ConfusedSample sample{"", targets[i], static_cast<int>(likeliest - classes.begin()), *likeliest, {}, {}};
      pass.matrix.at(static_cast<std::size_t>(sample.actual))[static_cast<std::size_t>(sample.taken_for)] += 1;
      const bool among = pass.samples.size() < max_samples || surer(sample, pass.samples.back());
      if (sample.actual == sample.taken_for || !among) continue;
      sample.name = data.split(SplitKind::validation)->name_of(found.first + i);
      if (is_picture(input.sample)) {
        sample.shape = input.sample;
        sample.pixels = sample_values(source.last().inputs[0], i, input.sample.count());
      }
      pass.samples.insert(std::upper_bound(pass.samples.begin(), pass.samples.end(), sample, surer), std::move(sample));
      if (pass.samples.size() > max_samples) pass.samples.pop_back();
    }
    return true;
  });
  return pass;
}

}  // namespace trainctl
