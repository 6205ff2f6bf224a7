// Writes a run as a job of Kubeflow's MPI operator, and the Dockerfile of the image for its pods.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

struct MpiJob {
  std::string name;  // see kubernetes_name()
  std::string image;
  std::string volume;  // name of a PersistentVolumeClaim, which contains config and data and receives the runs
  int workers = 1;
  int ranks_per_worker = 1;
  int gpus_per_worker = 0;
  std::optional<int> cpus_per_worker;
  std::vector<std::string> command;     // the command that the launcher runs in `workspace_folder`
  std::vector<std::string> written_by;  // the command that made the manifest
};

// The paths, in containers, of the volume and of the operator's list of workers.
inline constexpr std::string_view workspace_folder = "/workspace";
inline constexpr std::string_view operator_hostfile = "/etc/mpi/hostfile";

// Converts a run's name to a valid Kubernetes name for objects and hosts: at most 40 lower-case letters, digits and
// '-'.
std::string kubernetes_name(std::string_view name);

// Whether Kubernetes accepts the name for an object such as a volume claim: at most 253 characters, in parts that are
// separated by dots; a part has lower-case letters, digits and '-', and begins and ends with a letter or digit (RFC
// 1123).
bool is_object_name(std::string_view name);

// Returns the job's manifest, as YAML for kubeflow.org/v2beta1.
std::string mpi_job_manifest(const MpiJob& job);

// Returns the Dockerfile of an image for such jobs, which installs a release's .deb and, if workers have GPUs, NVIDIA's
// libraries.
std::string dockerfile(const MpiJob& job);

}  // namespace trainctl
