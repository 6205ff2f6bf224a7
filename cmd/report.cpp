// trainctl report: writes a page about a run, or a page that compares several runs.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "io/checkpoint/atomic_file.h"
#include "io/report/run_report.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/job/trained_network.h"
#include "run/prediction/confusion_pass.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct ReportOptions {
  CommonOptions common;
  std::vector<std::string> runs;
  std::string out;
  int samples = 0;  // number of misclassified samples that the page of a run shows
};

std::string text_of_runs(const std::vector<RunReport>& runs) {
  constexpr auto right = TextTable::Align::right;
  TextTable table(
      {{"run"}, {"status"}, {"epochs", right}, {"steps", right}, {"monitors"}, {"best", right}, {"at step", right}});
  for (const std::size_t i : best_first(runs)) {
    const RunHistory& history = runs[i].history;
    const auto best = history.best();
    table.add({runs[i].directory, history.status(), format("{:.4g}", history.epochs_done()),
               grouped(history.steps_done()), best ? best->monitor : "", best ? format("{:.5g}", best->value) : "",
               best ? grouped(best->step) : ""});
  }
  return table.text();
}

Json json_of_runs(const std::vector<RunReport>& runs) {
  Json list = Json::array();
  for (const std::size_t i : best_first(runs)) {
    const RunHistory& history = runs[i].history;
    const auto best = history.best();
    list.push_back({{"run", runs[i].directory},
                    {"status", history.status()},
                    {"epoch", history.epochs_done()},
                    {"step", history.steps_done()},
                    {"best", nullptr}});
    if (best) list.back()["best"] = {{"monitor", best->monitor}, {"value", best->value}, {"step", best->step}};
  }
  return list;
}

int write_report(const ReportOptions& options, const std::vector<RunReport>& runs) {
  const bool one = runs.size() == 1;
  const std::string file = !options.out.empty() ? options.out
                           : one                ? runs.front().directory + "/report.html"
                                                : "report.html";
  write_file(file, one ? run_page(runs.front()) : comparison_page(runs));
  if (options.common.json) {
    answer(json_line({{"report", file}, {"runs", json_of_runs(runs)}}));
  } else if (!options.common.quiet) {
    answer(text_of_runs(runs) + "written to " + file + "\n");
  }
  return 0;
}

int report(ReportOptions& options) {
  std::vector<RunReport> runs;
  require_not_input("--out", options.out, options.runs);
  for (const std::string& path : options.runs) {
    const std::string run = run_of(path);
    require_not_input("--out", options.out, files_of_run(run));
    runs.push_back(load_run_report(run));
  }
  if (options.samples == 0) return write_report(options, runs);
  if (runs.size() > 1) throw Error(ErrorKind::config, "--samples is for the report of one run");
  const std::string run = runs.front().directory;
  options.common.config = run + "/config.yaml";
  RunSpec spec = load_run_spec(options.common.config);
  if (input_names(spec.model).size() > 1 || output_names(spec.model).size() > 1) {
    throw Error(ErrorKind::config, "--samples requires a network of one input and one output", "leave it out");
  }
  spec.cluster.ranks = {1};
  spec.cluster.hosts.clear();
  spec.cluster.hostfile = {};
  spec.strategy = for_one_rank(spec.strategy);
  const LaunchFlags flags;
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, flags, launched_config(options.common), situation,
                                                      {false, options.common.json}))
    return *code;
  const RankCommand command = rank_command("report", Value<RunSpec>::write(spec), spec.cluster, flags);
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    ConfusionPass found = confusion_pass(spec, run, static_cast<std::size_t>(options.samples), context);
    runs.front().confusion = std::move(found.matrix);
    runs.front().confused = std::move(found.samples);
    return write_report(options, runs);
  });
}

}  // namespace

Subcommand report_subcommand() {
  return {
      "report", "Writes a page (HTML) about a run, or one that compares several",
      "trainctl report runs/mnist\n  trainctl report runs/mnist runs/mnist-2 --out compared.html", [](CLI::App& app) {
        auto options = std::make_shared<ReportOptions>();
        app.add_option("runs", options->runs, "Run directories, or configs for their newest runs")
            ->required()
            ->type_name("RUN_DIR|CONFIG");
        app.add_option("--out", options->out,
                       "The file, which is replaced if it exists; default: report.html in the run directory or, for "
                       "several runs, in this directory")
            ->type_name("FILE");
        app.add_option("--samples", options->samples,
                       "Also evaluates the run's best weights on the validation data, and shows the network's N most "
                       "confident mistakes")
            ->check(CLI::Range(1, 200))
            ->type_name("N");
        add_output_options(app, options->common);
        return [options] { return report(*options); };
      }};
}

}  // namespace trainctl
