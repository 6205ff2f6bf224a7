// Preloaded into a process, this library lets one system call on the files of a folder fail or kill the process. Calls
// are counted from 1 in the order in which they are made; the same program on the same input makes the same calls.
//
// TRAINCTL_FAULT_FOLDER: only calls on paths in this folder, and on their descriptors, are counted.
// TRAINCTL_FAULT_CALL: the number of the call that fails, 0 for none.
// TRAINCTL_FAULT_ERROR: the errno of this call, which is not made; 0 kills the process instead.
// TRAINCTL_FAULT_CHANGES: if set, only calls that change something are counted.
// TRAINCTL_FAULT_LOG: a file to which the name of every counted call is written, one per line.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { descriptors = 1024 };
static atomic_char ours[descriptors];  // which descriptors are of files in the folder
static atomic_long calls;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int in_folder(const char* path) {
  const char* folder = getenv("TRAINCTL_FAULT_FOLDER");
  return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_ours(int descriptor) {
  return descriptor >= 0 && descriptor < descriptors && atomic_load(&ours[descriptor]);
}

static int opened(int descriptor, int of_folder) {
  if (descriptor >= 0 && descriptor < descriptors) atomic_store(&ours[descriptor], (char)of_folder);
  return descriptor;
}

static void note(const char* name) {
  const char* log = getenv("TRAINCTL_FAULT_LOG");
  if (log == NULL) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char line[64];
  const int length = snprintf(line, sizeof line, "%s\n", name);
  syscall(SYS_write, file, line, (size_t)length);
  syscall(SYS_close, file);
}

// Whether the call must fail; then errno is set. `counts`: the call is on the folder; `changes`: it changes something.
static int hit(const char* name, int counts, int changes) {
  if (!counts || (!changes && getenv("TRAINCTL_FAULT_CHANGES") != NULL)) return 0;
  const int before = errno;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  note(name);
  errno = before;
  const char* call = getenv("TRAINCTL_FAULT_CALL");
  if (call == NULL || atol(call) != number) return 0;
  const char* error = getenv("TRAINCTL_FAULT_ERROR");
  const int code = error == NULL ? 0 : atoi(error);
  if (code == 0) syscall(SYS_kill, getpid(), SIGKILL);
  errno = code;
  return 1;
}

static int creates(int flags) { return (flags & (O_CREAT | O_TRUNC)) != 0; }

#define OPEN(name, at_parameter, at_argument, of_folder)                  \
  int name(at_parameter const char* path, int flags, ...) {               \
    va_list rest;                                                         \
    va_start(rest, flags);                                                \
    const mode_t mode = creates(flags) ? va_arg(rest, mode_t) : 0;        \
    va_end(rest);                                                         \
    const int counts = of_folder;                                         \
    if (hit(#name, counts, creates(flags))) return -1;                    \
    return opened(REAL(name)(at_argument path, flags, mode), counts);     \
  }
#define NOTHING
#define AT_PARAMETER int folder,
#define AT_ARGUMENT folder,
OPEN(open, NOTHING, NOTHING, in_folder(path))
OPEN(open64, NOTHING, NOTHING, in_folder(path))
OPEN(openat, AT_PARAMETER, AT_ARGUMENT, in_folder(path) || (path[0] != '/' && is_ours(folder)))
OPEN(openat64, AT_PARAMETER, AT_ARGUMENT, in_folder(path) || (path[0] != '/' && is_ours(folder)))

#define FOPEN(name)                                                        \
  FILE* name(const char* path, const char* mode) {                         \
    const int counts = in_folder(path);                                    \
    if (hit(#name, counts, mode[0] != 'r')) return NULL;                   \
    FILE* const file = REAL(name)(path, mode);                             \
    if (file != NULL) opened(fileno(file), counts);                        \
    return file;                                                           \
  }
FOPEN(fopen)
FOPEN(fopen64)

#define CALL(type, failure, name, parameters, arguments, counts, changes) \
  type name parameters {                                                  \
    if (hit(#name, counts, changes)) return failure;                      \
    return REAL(name) arguments;                                          \
  }
CALL(ssize_t, -1, read, (int file, void* to, size_t n), (file, to, n), is_ours(file), 0)
CALL(ssize_t, -1, pread, (int file, void* to, size_t n, off_t at), (file, to, n, at), is_ours(file), 0)
CALL(ssize_t, -1, write, (int file, const void* from, size_t n), (file, from, n), is_ours(file), 1)
CALL(ssize_t, -1, pwrite, (int file, const void* from, size_t n, off_t at), (file, from, n, at), is_ours(file), 1)
CALL(int, -1, ftruncate, (int file, off_t size), (file, size), is_ours(file), 1)
CALL(int, -1, fsync, (int file), (file), is_ours(file), 1)
CALL(int, -1, flock, (int file, int operation), (file, operation), is_ours(file), 0)
CALL(int, -1, fstat, (int file, struct stat* to), (file, to), is_ours(file), 0)
CALL(int, -1, stat, (const char* path, struct stat* to), (path, to), in_folder(path), 0)
CALL(int, -1, lstat, (const char* path, struct stat* to), (path, to), in_folder(path), 0)
CALL(int, -1, access, (const char* path, int mode), (path, mode), in_folder(path), 0)
CALL(int, -1, statvfs, (const char* path, struct statvfs* to), (path, to), in_folder(path), 0)
CALL(ssize_t, -1, readlink, (const char* path, char* to, size_t n), (path, to, n), in_folder(path), 0)
CALL(int, -1, mkdir, (const char* path, mode_t mode), (path, mode), in_folder(path), 1)
CALL(int, -1, rmdir, (const char* path), (path), in_folder(path), 1)
CALL(int, -1, unlink, (const char* path), (path), in_folder(path), 1)
CALL(int, -1, remove, (const char* path), (path), in_folder(path), 1)
CALL(int, -1, unlinkat, (int at, const char* path, int flags), (at, path, flags), in_folder(path) || is_ours(at), 1)
CALL(int, -1, symlink, (const char* to, const char* path), (to, path), in_folder(path), 1)
CALL(int, -1, rename, (const char* from, const char* to), (from, to), in_folder(to), 1)
CALL(int, -1, renameat2, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags),
     in_folder(to), 1)
CALL(struct dirent*, NULL, readdir, (DIR* folder), (folder), is_ours(dirfd(folder)), 0)
CALL(DIR*, NULL, fdopendir, (int file), (file), is_ours(file), 0)

DIR* opendir(const char* path) {
  const int counts = in_folder(path);
  if (hit("opendir", counts, 0)) return NULL;
  DIR* const folder = REAL(opendir)(path);
  if (folder != NULL) opened(dirfd(folder), counts);
  return folder;
}

int closedir(DIR* folder) {
  const int descriptor = dirfd(folder);
  const int counts = is_ours(descriptor);
  const int result = REAL(closedir)(folder);
  opened(descriptor, 0);
  return hit("closedir", counts, 0) ? -1 : result;
}

// As on Linux, the descriptor is closed even if the call fails.
int close(int file) {
  const int counts = is_ours(file);
  opened(file, 0);
  const int result = REAL(close)(file);
  return hit("close", counts, 0) ? -1 : result;
}
