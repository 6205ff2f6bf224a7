// trainctl schema: prints the config language for editors (JSON Schema) and for people (Markdown).
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/subcommands.h"
#include "core/spec/schema.h"
#include "io/yaml/yaml.h"
#include "parallel/launch/ranks/report.h"
#include "run/run_spec.h"

namespace trainctl {

Subcommand schema_subcommand() {
  return {.name = "schema",
          .summary = "Prints the JSON Schema of configs, or their reference",
          .example = "trainctl schema > trainctl.schema.json",
          .add = [](CLI::App& app) -> std::function<int()> {
            auto markdown = std::make_shared<bool>(false);
            app.add_flag("--markdown", *markdown, "Prints the reference in Markdown instead");
            return [markdown] {
              const Section& root = section_of<RunSpec>();
              answer(*markdown ? markdown_reference(root) : json_schema(root, parse_value));
              return 0;
            };
          }};
}

}  // namespace trainctl
