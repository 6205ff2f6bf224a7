// Examines the machines of a run rank by rank, and prints the findings before the steps that may fail.
#include "run/doctor/examination.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/output.h"
#include "io/loader/data.h"
#include "io/metrics/run_directory.h"
#include "parallel/comm/text.h"
#include "parallel/health/doctor/doctor.h"
#include "parallel/health/doctor/exchanges.h"
#include "parallel/health/doctor/nccl/capture.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/supervisor/outcome.h"
#include "parallel/plan/prediction.h"
#include "run/job/device.h"
#include "run/job/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Returns why a run could not use its directory; "" if it could.
std::string why_no_run_directory(const ExaminationRequest& request, const RunSpec& spec) {
  try {
    std::string directory = request.run_directory.empty() ? "runs/" + spec.name : request.run_directory;
    if (request.has_config) {
      const RunDirectory found({spec.name, request.run_directory, true, Value<RunSpec>::write(spec)});
      if (found.is_finished()) return "";
      directory = found.path();
    }
    probe_run_directory(directory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Does what a run does on its device before its first step: with a config it opens the data, chooses kernels and
// allocates memory; without a config it tries kernels on the GPU. Returns the bytes of a checkpoint, or 0 without a
// config.
std::int64_t set_up_run(const RunSpec& spec, bool has_config, RankDevice& device, RankContext& context) {
  if (!has_config && !device.backend->on_host()) try_kernels(*device.backend);
  if (!has_config) return 0;
  const Data data(spec.data, spec.seed, data_use(spec));
  const Job job(spec, data.info(), device, context.world, {}, "");
  return checkpoint_bytes({&job.programs().programs().front()}, spec.checkpoint.weights_only);
}

// Prints the findings so far, before the steps that may fail. Text: everything except the verdict. JSON: a report, only
// for a supervisor, which uses the last report that it receives.
void show_first(bool json, bool supervised, const std::vector<Json>& info, const std::vector<Problem>& problems) {
  if (!json) write_output(findings_text(info, problems));
  if (json && supervised) write_output(doctor_json(info, problems));
}

// Adds the links that NCCL chooses between the GPUs, and the slow choices; prints them as show_first() does.
void examine_links(const NcclLogCapture& log, bool json, RankDevice& device, RankContext& context,
                   std::vector<Json>& info, std::vector<Problem>& problems) {
  World& world = context.world;
  for (Problem& slow : add_nccl_choices(log, *device.peers, *device.backend, world, device.host, info)) {
    problems.push_back(std::move(slow));
  }
  if (world.rank() != 0) return;
  if (!json) write_output(nccl_text(info));
  if (json && context.situation.supervised) write_output(doctor_json(info, problems));
}

// Checks the data that every two GPUs exchange, and adds the result to the information about rank 0.
void check_exchanges(RankDevice& device, World& world, std::vector<Json>& info, std::vector<Problem>& problems) {
  if (!device.peers) {
    const std::string why = world.size() > 1 ? "the ranks compute on CPUs" : "there is one rank";
    if (world.rank() == 0) problems.push_back({false, "", "no data between GPUs was checked: " + why, ""});
    return;
  }
  const std::vector<Exchange> exchanges =
      exchange_data(*device.peers, *device.backend, world.communicator(), device.host);
  if (world.rank() != 0) return;
  info.front()["exchanges"] = to_json(exchanges);
  for (Problem& problem : problems_of(exchanges, world.hosts())) problems.push_back(std::move(problem));
}

// Prints the verdict or, as JSON, the whole report. `shown`: the number of problems that were printed before.
void show_last(bool json, const std::vector<Json>& info, const std::vector<Problem>& problems, std::size_t shown) {
  answer(json ? doctor_json(info, problems) : verdict_text(problems, shown));
}

// Returns the last line of the ranks' output; "" if there is none.
std::string last_line(const std::string& output) {
  if (output.size() < 2) return "";
  const std::size_t before = output.find_last_of('\n', output.size() - 2);
  return output.substr(before == std::string::npos ? 0 : before + 1);
}

}  // namespace

int examine(const RunSpec& spec, const ExaminationRequest& request, const std::string& launch_problem,
            RankContext& context) {
  World& world = context.world;
  const bool shows = world.rank() == 0, json = request.json;
  ImmediateStream host;
  std::optional<NcclLogCapture> nccl_log;
  if (world.size() > 1 && spec.cluster.device != DeviceChoice::cpu) nccl_log.emplace();
  const std::string directory = request.run_directory.empty() ? "runs/" + spec.name : request.run_directory;
  std::vector<Json> info = gather_info(directory, context, host);
  Json network = measure_network(world, host);
  std::vector<Problem> problems;
  if (shows) {
    const std::string why = why_no_run_directory(request, spec);
    info.front()["run_directory"]["why"] = why;
    info.front()["network"] = std::move(network);
    if (!why.empty()) info.front()["run_directory"]["writable"] = false;
    problems = find_problems(info, std::string(name_of(spec.cluster.device)),
                             std::string(name_of(spec.cluster.communication)));
    if (!launch_problem.empty() && !stops(problems)) problems.push_back({true, "", launch_problem, ""});
    show_first(json, context.situation.supervised, info, problems);
  }
  const std::size_t shown = problems.size();
  bool stopped = any_rank(stops(problems), world.communicator(), host);
  if (!stopped) {
    try {
      RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
      if (nccl_log && device.peers && device.peers->name() == "nccl") {
        examine_links(*nccl_log, json, device, context, info, problems);
      }
      if (request.gpus) check_exchanges(device, world, info, problems);
      const std::int64_t checkpoint = set_up_run(spec, request.has_config, device, context);
      if (shows) add_space_problem(info.front(), checkpoint, problems);
      stopped = any_rank(stops(problems), world.communicator(), host);
    } catch (const Error& error) {
      problems.push_back({true, "", error.what(), ""});
      stopped = true;
      const bool all_know = world.size() == 1 || dynamic_cast<const CollectiveError*>(&error) != nullptr;
      if (!all_know) {  // other ranks may wait for this rank: the error ends them, and a supervisor reports it
        if (shows && !context.situation.supervised) show_last(json, info, problems, shown);
        throw;
      }
    }
  }
  if (shows) show_last(json, info, problems, shown);
  return stopped ? exit_code(ErrorKind::answer_is_no) : 0;
}

void report_problem(bool json, const std::string& problem) { show_last(json, {}, {{true, "", problem, ""}}, 0); }

int report_examination(bool json, const Outcome& ranks) {
  const Failure& end = ranks.end;
  const std::string report = last_line(ranks.output);
  const int code = end.exit_code, no = exit_code(ErrorKind::answer_is_no);
  if (code == exit_code(ErrorKind::interrupted)) return trainctl::report(end, json, find_situation({}));
  std::string failure = end.message;
  if (failure.empty() && code != 0 && code != no) failure = format("the ranks ended with exit code {}", code);
  if (failure.empty()) {
    answer(report);
  } else if (json && !report.empty()) {
    answer(with_problem(report, {true, "", failure, ""}));
  } else {
    report_problem(json, failure);
  }
  return code == 0 ? 0 : no;
}

}  // namespace trainctl
