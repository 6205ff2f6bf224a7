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
  CHECK(defaults.every == Duration::epochs(1));
  CHECK(defaults.monitor.is_auto());
  CHECK(defaults.keep == 3);
  CHECK_FALSE(defaults.weights_only);
  const CheckpointOptions options =
      read("{every: 500 steps, monitor: val_accuracy, mode: max, keep: 1, weights_only: true}", reader);
  CHECK(reader.ok());
  CHECK(options.every == Duration::steps(500));
  CHECK(options.monitor.given == "val_accuracy");
  CHECK(options.mode.given == MonitorMode::maximum);
  CHECK(options.keep == 1);
  CHECK(options.weights_only);
  for (const char* wrong : {"keep: 0", "every: 0 steps", "mode: most", "weights_only: 3", "kept: 3"}) {
    INFO(wrong);
    Reader errors;
    read(wrong, errors);
    CHECK(errors.diagnostics().size() == 1);
  }
}

}  // namespace trainctl::options_test
