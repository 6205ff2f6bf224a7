// Keeps what a remote shell prints out of the ranks' output: a launcher hands it on as if a rank had printed it, the
// words of a host's login scripts too. It goes to the launcher's own messages instead.
//
// Part of the library that is preloaded (LD_PRELOAD) into mpirun and the programs by which it starts its daemons.
// OPAL_OUTPUT_STDERR_FD is the descriptor of the launcher's to which it writes its messages; the launcher closes it in
// its children. Needs the C library alone.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

// A descriptor of the process that has started this one, as a file.
struct OfParent {
  char path[64];
  struct stat status {};
  bool known = false;

  explicit OfParent(int descriptor) {
    snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(getppid()), descriptor);
    known = stat(path, &status) == 0;
  }
};

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Points an output at `to`. A child whose output the launcher reads itself has another one than the launcher, and keeps
// it.
void redirect(int output, int to) {
  struct stat own {};
  const OfParent theirs(output);
  if (theirs.known && fstat(output, &own) == 0 && same_file(own, theirs.status)) dup2(to, output);
}

__attribute__((constructor)) void quieten() {
  const char* number = getenv("OPAL_OUTPUT_STDERR_FD");
  const int descriptor = number == nullptr ? 0 : atoi(number);
  if (descriptor <= STDERR_FILENO) return;
  const OfParent messages(descriptor);
  const int to = messages.known && S_ISFIFO(messages.status.st_mode) ? open(messages.path, O_WRONLY | O_CLOEXEC) : -1;
  if (to < 0) return;
  redirect(STDOUT_FILENO, to);
  redirect(STDERR_FILENO, to);
  close(to);
}

}  // namespace
