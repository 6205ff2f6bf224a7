// A shell that reads process groups from a pipe, and kills the last one when the pipe ends.
#include "io/metrics/callbacks/group_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/format.h"

extern char** environ;

namespace trainctl {
namespace {

// The shell ignores what ends a whole session or a terminal's processes: it must outlive this process.
constexpr const char* guard_script =
    "trap '' HUP INT QUIT TERM USR1 USR2; while read -r line; do group=$line; done; "
    "[ -z \"$group\" ] || kill -KILL \"-$group\"";

}  // namespace

GroupGuard::GroupGuard() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::string shell = "sh", option = "-c", text = guard_script;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int error = posix_spawn(&shell_, "/bin/sh", &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(ends[0]);
  if (error == 0) {
    pipe_ = ends[1];
  } else {
    close(ends[1]);
    shell_ = -1;
  }
}

GroupGuard::~GroupGuard() {
  if (shell_ < 0) return;
  release();
  close(std::exchange(pipe_, -1));
  waitpid(shell_, nullptr, 0);
}

void GroupGuard::guard(pid_t group) { tell(format("{}\n", group).c_str()); }

void GroupGuard::release() { tell("\n"); }

void GroupGuard::tell(const char* line) {
  if (pipe_ >= 0 && write(pipe_, line, std::strlen(line)) < 0) {  // the shell is gone: nothing is guarded
    close(std::exchange(pipe_, -1));
  }
}

}  // namespace trainctl
