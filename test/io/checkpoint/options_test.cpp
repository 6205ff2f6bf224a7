// Tests reading the section `checkpoint` of a config.
#include "io/checkpoint/options.h"

#include "io/yaml/yaml.h"
#include "test/catch.h"

namespace trainctl::options_test {
namespace {

CheckpointOptions read(const std::string& text, Reader& reader) {
  CheckpointOptions options;
  section_of<CheckpointOptions>().read(parse_yaml(text, "c.yaml", "/", reader), reader, &options);
  return options;
}

}  // namespace

TEST_CASE("the checkpoint section is read, and invalid values are errors") {
  Reader reader;
  const CheckpointOptions defaults = read("{}", reader);
  CHECK(defaults.every.given == Duration::epochs(1));
  CHECK(defaults.monitor.is_auto());
  CHECK(defaults.keep == 3);
  CHECK_FALSE(defaults.weights_only);
  const CheckpointOptions options =
      read("{every: 500 steps, monitor: val_accuracy, mode: max, keep: 1, weights_only: true}", reader);
  CHECK(reader.ok());
  CHECK(options.every.given == Duration::steps(500));
  CHECK(options.monitor.given == "val_accuracy");
  CHECK(options.mode.given == MonitorMode::maximum);
  CHECK(options.keep == 1);
  CHECK(options.weights_only);
  CHECK(options.background_savers() == 1);
  const CheckpointOptions automatic = read("{every: auto, memory_every: 10 steps}", reader);
  CHECK(reader.ok());
  CHECK(automatic.every.is_auto());
  CHECK(automatic.memory_every == Duration::steps(10));
  CHECK(automatic.background_savers() == 2);
  for (const char* wrong : {"keep: 0", "every: 0 steps", "every: 30 s", "memory_every: 30 s", "memory_every: auto",
                            "mode: most", "weights_only: 3", "kept: 3"}) {
    INFO(wrong);
    Reader errors;
    read(wrong, errors);
    CHECK(errors.diagnostics().size() == 1);
  }
}

}  // namespace trainctl::options_test
