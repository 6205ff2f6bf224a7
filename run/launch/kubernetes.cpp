// Makes an MPIJob of Kubeflow's operator out of a config.
#include "parallel/launch/kubernetes/mpi_job.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/terminal_text.h"
#include "core/base/version.h"
#include "parallel/launch/plan.h"
#include "run/given_config.h"
#include "run/launch/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Throws Error{config} if a path is not below this directory, which the volume holds.
void require_below(const std::string& path, const std::string& what) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  if (!normal.is_absolute() && *normal.begin() != "..") return;
  throw Error(
      ErrorKind::config, format("{} {} is not below this directory", what, path),
      "the volume holds this directory, at the same relative paths: call trainctl in a folder above the config");
}

// Warns of environment variables that the config refers to, since they are not set in the pods.
void warn_of_variables(const GivenConfig& given) {
  const Variables here = Variables::of_process();
  for (const std::string& name : variables_of(given.config, given.sets, given.files)) {
    if (here.has(name))
      log::warning(format("the config refers to {}, which is set here and will not be in the pods", name));
  }
}

// Throws Error{config} if `image` cannot be the name of an image in a registry, such as
// "registry.example:5000/team/trainctl:1.2" or one with "@sha256:...".
void require_image_name(const std::string& image) {
  constexpr const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
  if (image.find_first_not_of(allowed) == std::string::npos && !image.starts_with('-')) return;
  throw Error(ErrorKind::config, format("--image '{}' is not the name of an image", terminal_word(image)),
              "use letters, digits and ._-/:@, as in REGISTRY/NAME:TAG");
}

// Throws Error{config} if `claim` cannot be the name of a volume claim: a DNS subdomain by RFC 1123.
void require_claim_name(const std::string& claim) {
  if (is_object_name(claim)) return;
  throw Error(ErrorKind::config, format("--volume '{}' is not the name of a volume claim", terminal_word(claim)),
              "use lower-case letters, digits, '-' and '.', with a letter or digit at the beginning, at the end and "
              "beside each '.', and at most 253 characters, as `kubectl get pvc` shows");
}

}  // namespace

MpiJob mpi_job(GivenConfig& given, const JobOptions& options) {
  require_image_name(options.image);
  require_claim_name(options.volume);
  require_below(given.config, "the config");
  if (!options.run_directory.empty()) require_below(options.run_directory, "--run-dir");
  const RunSpec spec = load_run_spec(given, {});
  const int ranks = checked_ranks(options, spec);
  if (ranks % options.nodes != 0) {
    throw Error(ErrorKind::config, format("{} ranks cannot be divided evenly among {} workers", ranks, options.nodes),
                "all workers have the same number of ranks: change --ranks or --nodes");
  }
  warn_of_variables(given);
  MpiJob job;
  job.name = kubernetes_name(spec.name);
  job.image = options.image.empty() ? format("trainctl:{}", version()) : options.image;
  job.volume = options.volume;
  job.workers = options.nodes;
  job.ranks_per_worker = ranks / options.nodes;
  job.gpus_per_worker = options.gpus_per_node;
  if (options.cpus_per_task) job.cpus_per_worker = *options.cpus_per_task * job.ranks_per_worker;
  std::vector<std::string> settings;  // the job runs on the operator's hosts
  if (!spec.cluster.hosts.empty()) settings.push_back("cluster.hosts={}");
  settings.push_back(format("cluster.hostfile={}", operator_hostfile));
  job.command = run_arguments(given, options, settings);
  job.command.insert(job.command.begin(), "trainctl");
  job.written_by = this_command();
  return job;
}

}  // namespace trainctl
