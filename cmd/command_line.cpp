// Parses the command line, runs the subcommand, reports its error and returns the exit code.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <regex>
#include <sstream>
#include <string_view>

#include "cmd/all_options.h"
#include "cmd/subcommands.h"
#include "core/base/failure.h"
#include "core/base/format.h"
#include "core/base/stack.h"
#include "core/base/version.h"
#include "core/spec/reader.h"
#include "core/spec/suggestion.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

std::vector<Subcommand> subcommands() {
  return {run_subcommand(),        check_subcommand(),        plan_subcommand(),      eval_subcommand(),
          predict_subcommand(),    report_subcommand(),       watch_subcommand(),     verify_scaling_subcommand(),
          bench_subcommand(),      inspect_subcommand(),      init_subcommand(),      import_subcommand(),
          export_subcommand(),     launch_subcommand(),       doctor_subcommand(),    schema_subcommand(),
          tokenizer_subcommand(),  resize_subcommand(),       replay_subcommand(),    rehearse_subcommand(),
          completion_subcommand(), remote_shell_subcommand(), host_agent_subcommand()};
}

// Reports the first unknown command or option and suggests the one that the user probably meant; "" if none is unknown.
std::string correction(const CLI::App& app, int argc, char** argv) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  std::vector<std::string> names;
  if (parsed.empty()) {
    const std::string word = argc > 1 ? argv[1] : "";
    for (const CLI::App* known : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
      names.push_back(known->get_name());
    }
    return word.empty() || word.front() == '-' ? "" : format("unknown command '{}'{}", word, suggestion(word, names));
  }
  for (const CLI::Option* option : all_options(*parsed.front())) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (int i = 2; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (word == "--") break;  // what follows are no options
    if (!word.starts_with("--") || std::find(names.begin(), names.end(), word) != names.end()) continue;
    const std::string near = suggestion(word, names);
    const bool has_settings = std::find(names.begin(), names.end(), "--set") != names.end();
    // Keys of the config are mistaken for options: --epochs 5.
    return format("unknown option '{}'{}", word,
                  near.empty() && has_settings ? "; --set sets a key of the config: --set train.epochs=5" : near);
  }
  return "";
}

// Rewords the parser's messages on options that are given twice and on extra arguments.
std::string in_plain_words(const CLI::App& app, const std::string& message) {
  static const std::regex often("(.*): At Most 1 required but received ([0-9]+)");
  static const std::regex extra("The following arguments? (?:was|were) not expected: (.*)");
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const CLI::Option* config = parsed.empty() ? nullptr : parsed.front()->get_option_no_throw("CONFIG");
  std::smatch match;
  if (config != nullptr && config->count() == 1 && std::regex_match(message, match, extra)) {
    return format("{} accepts one config, which is {}; remove the extra arguments: {}", parsed.front()->get_name(),
                  config->results().front(), match[1].str());
  }
  return std::regex_replace(message, often, "$1 is given $2 times; give it once");
}

// Describes what is wrong with the command line. If it asks for help or the version, prints that and returns success.
Failure usage_failure(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::ostringstream out, errors;
  if (error.get_exit_code() == 0) {
    app.exit(error, out, errors);
    answer(out.str());
    return {};
  }
  const int code = exit_code(ErrorKind::config);
  if (argc < 2) return {code, app.help()};
  const std::string text = correction(app, argc, argv);
  return {code, (text.empty() ? in_plain_words(app, error.what()) : text) + "\nRun with --help for more information."};
}

// Refuses empty arguments, which most often come from an unset variable of a script: no option accepts one.
void refuse_empty_words(const CLI::App& app) {
  for (const CLI::App* parsed : app.get_subcommands()) {
    for (const CLI::Option* option : parsed->get_options()) {
      const std::vector<std::string>& words = option->results();
      if (std::find(words.begin(), words.end(), "") == words.end()) continue;
      throw CLI::ValidationError(option->get_name(), "is empty; give it a value, or leave it out for its default");
    }
    refuse_empty_words(*parsed);
  }
}

// Looks for --json before the command line is parsed, so that a parsing error is reported as JSON, too.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + std::max(argc, 1),
                     [](const char* word) { return word == std::string_view("--json"); });
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app{"Trains networks described by one YAML file, on one GPU or CPU or on many.", "trainctl"};
  app.footer(
      "Begin with:\n  trainctl init PATH_OF_DATA    writes a config for your data: images, sounds, a table, text, ...\n"
      "  trainctl run CONFIG           trains the network that a config describes");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const Subcommand& subcommand : subcommands()) {
    CLI::App* parser = app.add_subcommand(subcommand.name, subcommand.summary);
    parser->footer("Example:\n  " + subcommand.example);
    parser->callback([&chosen, run = subcommand.add(*parser)] { chosen = run; });
  }
  const Situation situation = find_situation(Variables::of_process());
  const bool json = asks_for_json(argc, argv);
  const StopAtOnce stop(json ? STDOUT_FILENO : STDERR_FILENO, stop_message(json, situation));
  Failure failure;
  try {
    require_stack();
    app.parse(argc, argv);
    refuse_empty_words(app);
    const int code = chosen();
    finish_output();
    return code;
  } catch (const CLI::ParseError& error) {
    try {
      failure = usage_failure(app, error, argc, argv);
    } catch (...) {
      failure = failure_of(std::current_exception());
    }
  } catch (...) {
    failure = failure_of(std::current_exception());
  }
  // The errors of several ranks appear on one screen, so each one names its rank.
  if (failure.exit_code != 0 && situation.is_rank() && situation.ranks > 1) {
    name_rank(failure, situation, situation.rank, situation.local_ranks == situation.ranks ? "" : this_host());
  }
  // Ranks of the user's own mpirun that cannot start fail for the same reason, which rank 0 alone reports as JSON.
  return failure.exit_code == 0 ? 0 : report(failure, json && situation.rank == 0, situation);
}

}  // namespace trainctl
