// The table of subcommands, and the frame around them: parsing, error report, exit code.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "cmd/subcommand.h"
#include "cmd/subcommands.h"
#include "cmd/version.h"
#include "core/base/error.h"
#include "core/base/log.h"

namespace trainctl {
namespace {

std::vector<Subcommand> subcommands() {
  return {run_subcommand(),   check_subcommand(),   eval_subcommand(),
          bench_subcommand(), inspect_subcommand(), schema_subcommand()};
}

}  // namespace

void add_config_options(CLI::App& app, CommonOptions& options) {
  app.add_option("config", options.config, "The YAML file")->required()->type_name("CONFIG");
  app.add_option("--set", options.sets, "Replaces a value of the config: train.epochs=5 (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

void add_output_options(CLI::App& app, CommonOptions& options) {
  app.add_flag("--json", options.json, "One JSON document on stdout, and nothing else there");
  const auto on_flag = [](log::Level level) { return [level](const std::string&) { log::set_level(level); }; };
  app.add_flag("--quiet", options.quiet, "Only warnings and errors")->each(on_flag(log::Level::warning));
  app.add_flag("-v,--verbose", options.verbose, "More detail")->each(on_flag(log::Level::debug));
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Trains networks described by one YAML file, on one GPU or CPU or on many."};
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const Subcommand& subcommand : subcommands()) {
    CLI::App* parser = app.add_subcommand(subcommand.name, subcommand.summary);
    parser->footer("Example:\n  " + subcommand.example);
    parser->callback([&chosen, run = subcommand.add(*parser)] { chosen = run; });
  }
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(ErrorKind::config);
  } catch (const Error& error) {
    log::error(error.what());
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    log::error(std::string("internal error: ") + error.what());
    return exit_code(ErrorKind::internal);
  }
}

}  // namespace trainctl
