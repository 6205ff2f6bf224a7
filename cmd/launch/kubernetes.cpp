// trainctl launch kubernetes: prints an MPIJob, or the Dockerfile of its image.
#include "cmd/launch/launch.h"
#include "core/base/json.h"
#include "parallel/launch/kubernetes/mpi_job.h"
#include "parallel/launch/ranks/report.h"
#include "run/launch/job.h"

namespace trainctl {

int launch_kubernetes(LaunchOptions& options) {
  const MpiJob job = mpi_job(options.common, options.job);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true}, {"manifest", mpi_job_manifest(job)}, {"dockerfile", dockerfile(job)}}));
  } else {
    answer(options.dockerfile ? dockerfile(job) : mpi_job_manifest(job));
  }
  return 0;
}

}  // namespace trainctl
