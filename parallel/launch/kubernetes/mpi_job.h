// A run as a job of Kubeflow's MPI operator, and the image that its pods start.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

struct MpiJob {
  std::string name;  // see kubernetes_name()
  std::string image;
  std::string volume;  // a PersistentVolumeClaim: it holds config and data, and gets the runs
  int workers = 1;
  int ranks_per_worker = 1;
  int gpus_per_worker = 0;
  std::optional<int> cpus_per_worker;
  std::vector<std::string> command;     // that the launcher starts in `workspace_folder`
  std::vector<std::string> written_by;  // the command that made the manifest
};

// Where containers find the volume, and the operator's list of workers.
inline constexpr std::string_view workspace_folder = "/workspace";
inline constexpr std::string_view operator_hostfile = "/etc/mpi/hostfile";

// A run's name as Kubernetes takes it for objects and hosts: small letters, digits and '-', at most 40.
std::string kubernetes_name(std::string_view name);

// The job's manifest: YAML of kubeflow.org/v2beta1.
std::string mpi_job_manifest(const MpiJob& job);

// The Dockerfile of an image for such jobs, made of a release's .deb; where workers have GPUs it has NVIDIA's
// libraries, too.
std::string dockerfile(const MpiJob& job);

}  // namespace trainctl
