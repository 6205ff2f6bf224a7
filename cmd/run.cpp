// trainctl run: trains, as a supervisor of ranks, as one of them, or alone.
#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "cmd/launching.h"
#include "cmd/rank.h"
#include "cmd/subcommands.h"
#include "cmd/training.h"

namespace trainctl {
namespace {

struct RunOptions {
  CommonOptions common;
  LaunchFlags launch;
  TrainingRequest training;
};

const std::map<std::string, ProgressStyle> progress_styles = {{"auto", ProgressStyle::automatic},
                                                              {"bar", ProgressStyle::bar},
                                                              {"plain", ProgressStyle::plain},
                                                              {"none", ProgressStyle::none}};

int run(RunOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.common, options.launch, situation))
    return *code;
  options.training.config = Value<RunSpec>::write(spec);
  options.training.quiet = options.common.quiet;
  options.training.terminal_columns = situation.terminal_columns;
  options.training.json = options.common.json;
  return run_as_rank(situation, [&](RankContext& context) { return train(spec, options.training, context); });
}

// "10:20": steps 10 to 19, from 0.
std::string read_profile(const std::string& text, TrainingRequest& request) {
  const std::size_t colon = text.find(':');
  const auto read = [](const std::string& number, std::int64_t& value) {
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), value);
    return problem == std::errc() && end == number.data() + number.size() && value >= 0;
  };
  if (colon == std::string::npos || !read(text.substr(0, colon), request.profile_first) ||
      !read(text.substr(colon + 1), request.profile_end)) {
    return "wants FIRST:END, two numbers of steps: 10:20";
  }
  return request.profile_end > request.profile_first ? "" : "wants FIRST:END with END after FIRST";
}

}  // namespace

Subcommand run_subcommand() {
  return {"run", "Trains the network that a config describes",
          "trainctl run configs/quickstart.yaml --set train.epochs=3", [](CLI::App& app) {
            auto options = std::make_shared<RunOptions>();
            TrainingRequest& training = options->training;
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--run-dir", training.run_directory, "The run's directory; default: runs/<name>")
                ->type_name("PATH");
            app.add_option(
                   "--resume", training.resume,
                   "auto goes on where an unfinished run of the same config stopped, never does not, a checkpoint's "
                   "PATH goes on from there")
                ->type_name("auto|never|PATH");
            app.add_option("--progress", training.progress, "How progress is shown")
                ->transform(CLI::CheckedTransformer(progress_styles))
                ->option_text("auto|bar|plain|none");
            app.add_option("--profile", "Records steps FIRST to END - 1 and writes timeline.json, which Perfetto opens")
                ->type_name("FIRST:END")
                ->check([&training](const std::string& text) { return read_profile(text, training); });
            return [options] { return run(*options); };
          }};
}

}  // namespace trainctl
