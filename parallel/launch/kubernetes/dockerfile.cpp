// Writing the Dockerfile.
#include "core/base/format.h"
#include "parallel/launch/kubernetes/mpi_job.h"
#include "parallel/launch/shell_words.h"

namespace trainctl {
namespace {

// The operator gives every pod a key in ~/.ssh; workers let nobody else in. A server that is no root's cannot read the
// keys of the system.
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

std::string dockerfile(const MpiJob& job) {
  const bool gpus = job.gpus_per_worker > 0;
  return format(image, one_line(shell_line(job.written_by)), one_line(shell_word(job.image)),
                gpus ? " python3-pip" : "", gpus ? nvidia : "", workspace_folder);
}

}  // namespace trainctl
