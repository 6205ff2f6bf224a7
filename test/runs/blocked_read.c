// Preloaded into a process, this library lets reads of one file block, as on a file server that does not answer, while a
// FIFO exists. TRAINCTL_BLOCKED_FILE: the path of the file. TRAINCTL_BLOCKED_FIFO: the path of the FIFO. With
// TRAINCTL_SLOW_RANK, the number of a rank, its first read of the file takes TRAINCTL_SLOW_SECONDS.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_blocked(int descriptor) {
  const char* file = getenv("TRAINCTL_BLOCKED_FILE");
  char link[64], path[4096];
  if (file == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return strcmp(path, file) == 0;
}

static void wait_once_on_slow_rank(int descriptor) {
  static int has_waited = 0;
  const char *slow = getenv("TRAINCTL_SLOW_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  if (slow == NULL || rank == NULL || strcmp(slow, rank) != 0 || has_waited || !is_blocked(descriptor)) return;
  has_waited = 1;
  sleep((unsigned)atoi(getenv("TRAINCTL_SLOW_SECONDS")));
}

ssize_t pread(int descriptor, void* data, size_t count, off_t offset) {
  const char* fifo = getenv("TRAINCTL_BLOCKED_FIFO");
  wait_once_on_slow_rank(descriptor);
  if (fifo != NULL && is_blocked(descriptor)) {
    const int pipe = open(fifo, O_RDWR | O_CLOEXEC);  // a FIFO that is open for writing, too, has no end
    if (pipe >= 0) return read(pipe, data, count);
  }
  return ((__typeof__(&pread))dlsym(RTLD_NEXT, "pread"))(descriptor, data, count, offset);
}

ssize_t pread64(int descriptor, void* data, size_t count, off_t offset) {
  return pread(descriptor, data, count, offset);
}
