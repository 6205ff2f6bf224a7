// Writes the manifest of an MPIJob, and the Dockerfile of its image.
#include "parallel/launch/kubernetes/mpi_job.h"

#include <algorithm>
#include <cctype>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/shell_words.h"
#include "core/base/terminal_text.h"

namespace trainctl {
namespace {

// Placeholders: {0} command line that prints the manifest, {1} name of the job, {2} ranks per worker, {3} command of
// the launcher, {4} image, {5} number of workers, {6} resources of a worker, {7} volume, {8} workspace folder.
constexpr const char* manifest = R"yaml(# {0}
# The volume claim {7} must hold the config and the data of this directory at the same paths; the runs are written there, too.
# To build the image, run in a folder with a release's .deb: trainctl launch kubernetes CONFIG --dockerfile > Dockerfile && docker build -t IMAGE .
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: {1}
spec:
  slotsPerWorker: {2}
  launcherCreationPolicy: WaitForWorkersReady
  sshAuthMountPath: /home/trainctl/.ssh
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 6  # the launcher starts again and resumes if it failed, or if it was stopped and saved (exit code 75)
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 120  # for a checkpoint
          securityContext: &user
            runAsNonRoot: true
            runAsUser: 1000
            runAsGroup: 1000
            fsGroup: 1000
          containers:
          - name: launcher
            image: {4}
            workingDir: {8}
            command: {3}
            resources:
              requests: {{cpu: 1, memory: 1Gi}}
            securityContext: &container
              allowPrivilegeEscalation: false
              capabilities: {{drop: [ALL]}}
            volumeMounts:
            - {{name: workspace, mountPath: {8}}}
          volumes:
          - &workspace
            name: workspace
            persistentVolumeClaim: {{claimName: {7}}}
    Worker:
      replicas: {5}
      template:
        spec:
          terminationGracePeriodSeconds: 120
          securityContext: *user
          containers:
          - name: worker
            image: {4}
            workingDir: {8}
            command: [/usr/sbin/sshd, -De, -f, /etc/trainctl/sshd_config]
            readinessProbe:
              tcpSocket: {{port: 2222}}
            lifecycle:  # before this pod ends, its ranks are asked to stop, and it waits until all ranks have saved
              preStop:
                exec:
                  command:
                  - sh
                  - -c
                  - |
                    ranks() {{ grep -lx trainctl /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3; }}
                    kill -USR1 $(ranks) 2>/dev/null
                    while [ "$(ranks)" ]; do sleep 1; done
{6}            securityContext: *container
            volumeMounts:
            - {{name: workspace, mountPath: {8}}}
            - {{name: shared-memory, mountPath: /dev/shm}}
          volumes:
          - *workspace
          - name: shared-memory
            emptyDir: {{medium: Memory, sizeLimit: 8Gi}}
)yaml";

// JSON is valid YAML if it contains no character that YAML treats as a line end (U+0085, U+2028).
std::string yaml_text(const Json& text) { return terminal_text(text.dump()); }

std::string resources(const MpiJob& job) {
  Json limits = Json::object();
  if (job.gpus_per_worker > 0) limits["nvidia.com/gpu"] = job.gpus_per_worker;
  if (job.cpus_per_worker) limits["cpu"] = *job.cpus_per_worker;
  if (limits.empty()) return "";
  return format("            resources:\n              limits: {}\n", json_text(limits));
}

// The operator puts an ssh key into ~/.ssh of every pod; workers accept no other key. An ssh server that does not run
// as root cannot read the system's host keys, so the image has its own.
constexpr const char* image = R"(# {0}
# Build it in a folder that holds a release's trainctl_*.deb: docker build -t {1} -f Dockerfile .
FROM debian:12
COPY trainctl_*.deb /tmp/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /tmp/trainctl_*.deb openssh-client openssh-server{2} \
 && rm -rf /tmp/trainctl_*.deb /var/lib/apt/lists/*
{3}RUN useradd --uid 1000 --create-home trainctl \
 && install -d -o trainctl -m 700 /etc/trainctl /home/trainctl/.ssh \
 && ssh-keygen -q -t ed25519 -N '' -f /etc/trainctl/host_key \
 && printf '%s\n' 'Port 2222' 'HostKey /etc/trainctl/host_key' 'PidFile none' 'UsePAM no' \
      'AuthorizedKeysFile /home/trainctl/.ssh/authorized_keys' 'StrictModes no' \
      'PasswordAuthentication no' 'KbdInteractiveAuthentication no' 'AllowUsers trainctl' >/etc/trainctl/sshd_config \
 && printf '%s\n' 'Host *' '  Port 2222' '  StrictHostKeyChecking no' '  UserKnownHostsFile /dev/null' \
      '  LogLevel ERROR' >/etc/ssh/ssh_config.d/trainctl.conf \
 && chown trainctl /etc/trainctl/*
USER trainctl
WORKDIR {4}
)";

constexpr const char* nvidia = R"(RUN pip install --no-cache-dir --break-system-packages \
      'nvidia-cublas==13.*' 'nvidia-cuda-nvrtc==13.*' 'nvidia-cudnn-cu13==9.*' 'nvidia-nccl-cu13==2.*'
)";

}  // namespace

std::string kubernetes_name(std::string_view name) {
  // Names of pods and hosts have at most 63 characters; the operator appends text such as "-worker-0".
  constexpr std::size_t longest = 40;
  std::string result;
  for (const unsigned char c : name.substr(0, longest)) {
    result += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  const std::size_t first = result.find_first_not_of('-');
  if (first == std::string::npos) return "run";
  result.erase(0, first);
  return std::isdigit(static_cast<unsigned char>(result.front())) != 0 ? "run-" + result : result;
}

bool is_object_name(std::string_view name) {
  constexpr std::string_view ends = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t longest = 253;
  if (name.size() > longest) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part.front() == '-' || part.back() == '-') return false;
    if (!std::all_of(part.begin(), part.end(), [&](char c) { return c == '-' || ends.find(c) != ends.npos; })) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

std::string mpi_job_manifest(const MpiJob& job) {
  return format(manifest, one_line(shell_line(job.written_by)), job.name, job.ranks_per_worker, yaml_text(job.command),
                yaml_text(job.image), job.workers, resources(job), yaml_text(job.volume), workspace_folder);
}

std::string dockerfile(const MpiJob& job) {
  const bool gpus = job.gpus_per_worker > 0;
  return format(image, one_line(shell_line(job.written_by)), one_line(shell_word(job.image)),
                gpus ? " python3-pip" : "", gpus ? nvidia : "", workspace_folder);
}

}  // namespace trainctl
