// Finds problems in the gathered information, and their remedies.
#include "parallel/health/doctor/doctor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "parallel/health/doctor/gpus.h"
#include "parallel/health/doctor/text_of.h"
#include "parallel/launch/host/resources.h"

namespace trainctl {
namespace {

constexpr double little_disk = 1e9;
constexpr double clocks_differ = 1;  // seconds
constexpr double little_shared_memory = 64 << 20;
constexpr double little_locked_memory = 64 << 20;

using Problems = std::vector<Problem>;

// Returns the major version, such as "4" for "Open MPI 4.1.4" and for "Open MPI v4.1.4".
std::string major_of(const std::string& version) {
  const std::size_t digit = version.find_first_of("0123456789");
  return digit == std::string::npos ? "" : version.substr(digit, version.find('.', digit) - digit);
}

void check_host(const Json& rank, std::size_t ranks_here, bool several_hosts, Problems& problems) {
  const std::string host = rank["host"];
  const std::string built = rank["mpi"]["built"], found = rank["mpi"]["found"];
  if (major_of(built) != major_of(found)) {
    problems.push_back({true, host, format("trainctl is built with {}, but {} is found", built, found),
                        "install the MPI that it was built with, or build it again"});
  }
  const Json& folder = rank["run_directory"];
  if (const std::string why = text_of(folder.value("why", Json())); !why.empty()) {
    problems.push_back({true, host, why, ""});
  } else if (!folder["writable"].get<bool>()) {
    problems.push_back({true, host, format("{} cannot be written", text_of(folder["path"])),
                        "choose another run directory (--run-dir)"});
  } else if (folder["free_bytes"].is_number() && folder["free_bytes"].get<double>() < little_disk) {
    problems.push_back({false, host, format("{} has {} left", text_of(folder["path"]), byte_text(folder["free_bytes"])),
                        "free some space, keep fewer checkpoints (checkpoint.keep), or choose another run directory"});
  }
  if (several_hosts && !folder["shared"].get<bool>()) {
    problems.push_back(
        {false, host, format("{} is not the same folder as on rank 0", text_of(folder["path"])),
         "checkpoints are stored only on rank 0's host; to resume on other hosts, use a shared file system"});
  }
  if (ranks_here > 1 && rank["shared_memory_free_bytes"].is_number() &&
      rank["shared_memory_free_bytes"].get<double>() < little_shared_memory) {
    problems.push_back({false, host, format("/dev/shm has {} left", byte_text(rank["shared_memory_free_bytes"])),
                        "give the container more (docker run --shm-size=1g): ranks exchange data through it"});
  }
  if (several_hosts && rank["locked_memory_limit_bytes"].is_number() &&
      rank["locked_memory_limit_bytes"].get<double>() < little_locked_memory) {
    problems.push_back({false, host,
                        format("only {} of memory may be locked", byte_text(rank["locked_memory_limit_bytes"])),
                        "networks with RDMA need more: ulimit -l unlimited"});
  }
}

// Reports throttled GPUs of one host. A power cap is not reported, since it is normal for busy GPUs.
void check_throttling(const std::vector<Json>& info, const std::string& host, Problems& problems) {
  for (const HostGpu& gpu : gpus_of_host(info, host)) {
    for (const Json& reason : gpu.info.value("throttled", Json::array())) {
      if (reason == "power cap") continue;
      problems.push_back({false, host,
                          format("GPU {} is throttled now: {}", text_of(gpu.info["uuid"]), text_of(reason)),
                          "check its cooling and power limit (nvidia-smi -q -d PERFORMANCE)"});
    }
  }
}

// Returns the reason why a host has no GPU to compute on, and the remedy.
Problem no_gpu(const Json& rank, bool stops) {
  const std::string host = rank["host"];
  if (!text_of(rank["driver"]["why"]).empty())
    return {stops, host, text_of(rank["driver"]["why"]), "compute on the CPU (--device cpu)"};
  if (!rank["cuda"]["module"].get<bool>()) {
    return {
        stops, host, "the CUDA backend cannot be loaded: " + text_of(rank["cuda"]["why"]),
        "install CUDA's libraries (cuBLAS, cuDNN), or name their folders in LD_LIBRARY_PATH; pip's nvidia-cublas and "
        "nvidia-cudnn-cu13 do"};
  }
  if (rank["gpus"].empty()) return {stops, host, "the driver finds no GPU", "check nvidia-smi"};
  return {stops, host,
          format("CUDA can use none of the {} GPUs: {}", rank["gpus"].size(),
                 text_of(rank["cuda"].value("why_no_gpu", Json()))),
          text_of(rank["cuda"].value("remedy", Json()))};
}

// Checks the GPU that a rank computes on.
void check_own_gpu(const Json& rank, Problems& problems) {
  for (const Json& gpu : rank["gpus"]) {
    if (gpu["uuid"] != rank["gpu"] || text_of(gpu.value("why_not", Json())).empty()) continue;
    problems.push_back({true, format("rank {} on {}", rank["rank"].get<int>(), text_of(rank["host"])),
                        text_of(gpu["why_not"]),
                        "choose other GPUs by CUDA_VISIBLE_DEVICES, or compute on the CPU (--device cpu)"});
  }
}

// Reports a missing NVRTC, without which expressions have no kernels, and cuDNN works more slowly.
void check_nvrtc(const Json& rank, Problems& problems) {
  for (const Json& library : rank["cuda"]["libraries"]) {
    if (library["name"] != "NVRTC" || !text_of(library["found"]).empty()) continue;
    problems.push_back(
        {false, rank["host"],
         "there is no NVRTC (libnvrtc), which compiles the expressions of a config, and some of cuDNN's fastest "
         "kernels",
         "install it (pip's nvidia-cuda-nvrtc does)"});
  }
}

void check_gpus(const std::vector<Json>& info, const std::string& device, const std::string& communication,
                Problems& problems) {
  std::set<std::string> hosts_without, hosts_with;
  std::map<std::string, int> owner;  // first rank of each GPU, by host and UUID
  std::set<std::string> models;
  std::size_t with = 0;
  bool shared = false;
  std::string why_no_nccl;
  for (const Json& rank : info) {
    if (rank["gpu"].is_null()) {
      const bool has_driver = text_of(rank["driver"]["why"]).empty() && !rank["gpus"].empty();
      if ((device == "cuda" || has_driver) && hosts_without.insert(rank["host"]).second)
        problems.push_back(no_gpu(rank, device == "cuda"));
      continue;
    }
    ++with;
    check_own_gpu(rank, problems);
    if (hosts_with.insert(rank["host"]).second) check_nvrtc(rank, problems);
    for (const Json& gpu : rank["gpus"]) {
      if (gpu["uuid"] == rank["gpu"]) models.insert(gpu["name"]);
    }
    const auto [entry, first] =
        owner.try_emplace(text_of(rank["host"]) + " " + text_of(rank["gpu"]), rank["rank"].get<int>());
    if (!first) {
      shared = true;
      problems.push_back({communication == "nccl",
                          format("rank {} on {}", rank["rank"].get<int>(), text_of(rank["host"])),
                          format("computes on {}, as rank {} does; they exchange data through the host's memory",
                                 text_of(rank["gpu"]), entry->second),
                          "use one rank for each GPU (--ranks auto)"});
    }
    why_no_nccl = text_of(rank["cuda"]["why_no_nccl"]);
  }
  if (with > 0 && with < info.size()) {
    problems.push_back({true, "", format("{} of {} ranks have a GPU", with, info.size()),
                        "choose hosts that have one for each rank, or --device cpu"});
  }
  if (with > 1 && !shared && !why_no_nccl.empty()) {
    problems.push_back({communication == "nccl", "",
                        "NCCL cannot be used, and GPUs exchange data slowly: " + why_no_nccl,
                        "install NCCL (pip's nvidia-nccl-cu13 does)"});
  }
  if (models.size() > 1) {
    problems.push_back({false, "", "the GPUs are of different models: all wait for the slowest", "choose equal GPUs"});
  }
}

// Compares the clock with the clock of the first rank's host.
void check_clock(const Json& rank, const Json& first, Problems& problems) {
  const double ahead = rank.value("clock_seconds", 0.0) - first.value("clock_seconds", 0.0);
  if (std::abs(ahead) < clocks_differ) return;
  problems.push_back({false, rank["host"],
                      format("its clock is {:.0f} s {} the clock of {}", std::abs(ahead),
                             ahead > 0 ? "ahead of" : "behind", text_of(first["host"])),
                      "synchronize it with a time server (chrony): otherwise times in logs and files are wrong"});
}

// A cost of all-reduces between two hosts, with the texts that report a high cost.
struct PairCost {
  using Text = std::string (*)(double own, double best);

  double (*of)(const Json& pair);
  // A cost is much higher than another cost if it is larger by more than this factor and this difference.
  double factor, min_difference;
  Text host_text, pair_text;

  bool is_much_higher(double cost, double than) const { return cost > factor * than && cost > than + min_difference; }
};

std::string rate_text(double seconds_per_byte) { return byte_text(std::llround(1 / seconds_per_byte)) + "/s"; }

constexpr PairCost seconds_per_byte{
    [](const Json& pair) { return pair["large_seconds"].get<double>() / pair["large_bytes"].get<double>(); }, 2, 0,
    [](double own, double best) {
      return format("all-reduces with it move at most {}, all-reduces between other hosts {}", rate_text(own),
                    rate_text(best));
    },
    [](double own, double best) {
      return format("all-reduces between them move {}, all-reduces between other hosts up to {}", rate_text(own),
                    rate_text(best));
    }};

// The measurements of small all-reduces vary more, so that the factor is larger.
constexpr PairCost small_seconds{
    [](const Json& pair) { return pair["small_seconds"].get<double>(); }, 4, 100e-6,
    [](double own, double best) {
      return format("small all-reduces with it take {}, small all-reduces between other hosts {}", seconds_text(own),
                    seconds_text(best));
    },
    [](double own, double best) {
      return format("small all-reduces between them take {}, small all-reduces between other hosts {}",
                    seconds_text(own), seconds_text(best));
    }};

// Reports all-reduces between two hosts that cost much more than between other hosts. Reports a host if all its pairs
// are slow, otherwise the pair.
void check_network(const Json& pairs, const PairCost& cost, Problems& problems) {
  double best = std::numeric_limits<double>::infinity();
  std::map<std::string, double> best_of;
  for (const Json& pair : pairs) {
    best = std::min(best, cost.of(pair));
    for (const Json& host : pair["hosts"]) {
      const auto entry = best_of.try_emplace(host, cost.of(pair)).first;
      entry->second = std::min(entry->second, cost.of(pair));
    }
  }
  for (const auto& [host, own] : best_of) {
    if (!cost.is_much_higher(own, best)) continue;
    problems.push_back({false, host, cost.host_text(own, best),
                        "check its card, its cable and its port (ethtool), and what else uses them"});
  }
  for (const Json& pair : pairs) {
    const auto known = [&](std::size_t host) { return cost.is_much_higher(best_of[pair["hosts"][host]], best); };
    if (!cost.is_much_higher(cost.of(pair), best) || known(0) || known(1)) continue;
    problems.push_back({false, format("{} and {}", text_of(pair["hosts"][0]), text_of(pair["hosts"][1])),
                        cost.pair_text(cost.of(pair), best), "check the switches between them"});
  }
}

}  // namespace

bool stops(const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.stops_a_run; });
}

void add_space_problem(const Json& first, std::int64_t checkpoint_bytes, std::vector<Problem>& problems) {
  const Json& folder = first["run_directory"];
  if (!folder["free_bytes"].is_number()) return;
  const auto free_bytes = folder["free_bytes"].get<std::int64_t>();
  if (free_bytes < record_bytes_of_run) {
    problems.push_back({true, first["host"],
                        format("{} has {} left, but a run's log, metrics and report need {}", text_of(folder["path"]),
                               byte_text(free_bytes), byte_text(record_bytes_of_run)),
                        "free some space, or choose another run directory (--run-dir)"});
    return;
  }
  if (free_bytes >= 2 * checkpoint_bytes + record_bytes_of_run) return;
  problems.push_back(
      {free_bytes < checkpoint_bytes + record_bytes_of_run, first["host"],
       format("{} has {} left; a checkpoint takes {}, and a new one is complete before an old one is deleted",
              text_of(folder["path"]), byte_text(free_bytes), byte_text(checkpoint_bytes)),
       "free some space, or choose another run directory"});
}

std::vector<Problem> find_problems(const std::vector<Json>& info, const std::string& device,
                                   const std::string& communication) {
  Problems problems;
  std::map<std::string, std::size_t> ranks_of;
  for (const Json& rank : info) ++ranks_of[rank["host"]];
  std::set<std::string> seen;
  for (const Json& rank : info) {
    if (!seen.insert(rank["host"]).second) continue;
    check_host(rank, ranks_of[rank["host"]], ranks_of.size() > 1, problems);
    check_throttling(info, rank["host"], problems);
    check_clock(rank, info.front(), problems);
    if (rank["version"] != info.front()["version"]) {
      problems.push_back({true, rank["host"],
                          format("trainctl {}, but {} on {}", text_of(rank["version"]),
                                 text_of(info.front()["version"]), text_of(info.front()["host"])),
                          "install the same version everywhere"});
    }
  }
  const Json pairs = info.front().value("network", Json::array());
  for (const PairCost& cost : {seconds_per_byte, small_seconds}) check_network(pairs, cost, problems);
  if (device != "cpu") check_gpus(info, device, communication, problems);
  return problems;
}

}  // namespace trainctl
