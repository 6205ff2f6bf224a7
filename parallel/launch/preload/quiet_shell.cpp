// Adds the output of remote shells, such as the texts of login scripts, to the launcher's own messages. Without this, a
// launcher would add it to the ranks' output.
//
// Part of the library that is preloaded (LD_PRELOAD) into mpirun and the programs that start its daemons. The launcher
// writes its messages to the descriptor OPAL_OUTPUT_STDERR_FD, which it closes in its children. Uses only the C
// library.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

// A descriptor of the parent process, as a file.
struct ParentDescriptor {
  char path[64];
  struct stat status {};
  bool known = false;

  explicit ParentDescriptor(int descriptor) {
    snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(getppid()), descriptor);
    known = stat(path, &status) == 0;
  }
};

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Redirects an output of this process to `to` if it is also the launcher's output. If the launcher reads the child's
// output itself, the child has another output, which is not changed.
void redirect(int output, int to) {
  struct stat own {};
  const ParentDescriptor theirs(output);
  if (theirs.known && fstat(output, &own) == 0 && same_file(own, theirs.status)) dup2(to, output);
}

__attribute__((constructor)) void quieten() {
  const char* number = getenv("OPAL_OUTPUT_STDERR_FD");
  const int descriptor = number == nullptr ? 0 : atoi(number);
  if (descriptor <= STDERR_FILENO) return;
  const ParentDescriptor messages(descriptor);
  const int to = messages.known && S_ISFIFO(messages.status.st_mode) ? open(messages.path, O_WRONLY | O_CLOEXEC) : -1;
  if (to < 0) return;
  redirect(STDOUT_FILENO, to);
  redirect(STDERR_FILENO, to);
  close(to);
}

}  // namespace
