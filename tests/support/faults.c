// Preloaded into a program, this lets one of its file system calls fail, or kills it just before
// that call. Only calls that change something in one folder count: open (to create), write, fsync,
// rename, mkdir, remove. Any thread of the program may make them.
//
//   FAULT_FOLDER  absolute path without symbolic links; the folder itself, too, counts
//   FAULT_RANK    only in the worker with this RANK; in all processes where it is not set
//   FAULT_KIND    count   append a line "call path" per call to the file FAULT_LOG
//                 kill    SIGKILL before the call
//                 ENOSPC  the call fails with this, and every later write
//                 EIO     the call fails with this
//   FAULT_CALL    open, write, fsync, rename, mkdir or remove
//   FAULT_AT      which of the calls of that name, from 1. By name, since workers that share a
//                 folder race for who makes it
//
// Calls go to the kernel directly: looking up the functions that these replace allocates memory,
// and may be too early when a library of the program calls.

#define _GNU_SOURCE
// Either may be a compiler's default, and makes something else of the functions defined here.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;      // of the name FAULT_CALL
static atomic_bool disk_full;  // since the ENOSPC

// ---- which calls count -------------------------------------------------------------------------

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "";
}

static bool is_set(const char* name, const char* value) {
  return strcmp(setting(name), value) == 0;
}

static bool of_this_worker(void) {
  const char* rank = setting("FAULT_RANK");
  return *rank == '\0' || is_set("RANK", rank);
}

static bool path_of_descriptor(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, PATH_MAX - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return true;
}

static bool absolute(int folder, const char* name, char* path) {
  char base[PATH_MAX] = "";
  if (name[0] != '/') {
    const bool found =
        folder == AT_FDCWD ? getcwd(base, sizeof base) != NULL : path_of_descriptor(folder, base);
    if (!found) return false;
  }
  return snprintf(path, PATH_MAX, "%s%s%s", base, name[0] == '/' ? "" : "/", name) < PATH_MAX;
}

// The part below FAULT_FOLDER, "." for that itself; null for any other path.
static const char* below_folder(const char* path) {
  const char* folder = setting("FAULT_FOLDER");
  const size_t size = strlen(folder);
  if (size == 0 || strncmp(path, folder, size) != 0) return NULL;
  if (path[size] == '\0') return ".";
  return path[size] == '/' ? path + size + 1 : NULL;
}

// ---- what becomes of them ----------------------------------------------------------------------

static void log_call(const char* call, const char* path) {
  char line[PATH_MAX + 16];
  const int size = snprintf(line, sizeof line, "%s %s\n", call, path);
  const long log = syscall(SYS_openat, AT_FDCWD, setting("FAULT_LOG"),
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool logged = log >= 0 && size > 0 && syscall(SYS_write, log, line, (size_t)size) == size;
  if (!logged) abort();  // the test would miss a call
  syscall(SYS_close, log);
}

static void kill_this_process(void) {
  for (;;) kill(getpid(), SIGKILL);
}

// The errno of a call that is to fail; 0 of one that is to be made.
static int fault(const char* call, const char* path) {
  const char* inside = of_this_worker() ? below_folder(path) : NULL;
  if (inside == NULL) return 0;
  if (is_set("FAULT_KIND", "count")) log_call(call, inside);
  if (disk_full && strcmp(call, "write") == 0) return ENOSPC;
  if (!is_set("FAULT_CALL", call) || ++calls != atol(setting("FAULT_AT"))) return 0;
  if (is_set("FAULT_KIND", "kill")) kill_this_process();
  if (is_set("FAULT_KIND", "EIO")) return EIO;
  if (!is_set("FAULT_KIND", "ENOSPC")) return 0;
  disk_full = true;
  return ENOSPC;
}

// True, with errno set, of a call that is to fail.
static bool fails_at(const char* call, int folder, const char* name) {
  const int before = errno;
  char path[PATH_MAX];
  const int error = absolute(folder, name, path) ? fault(call, path) : 0;
  errno = error != 0 ? error : before;
  return error != 0;
}

static bool fails_on(const char* call, int fd) {
  const int before = errno;
  char path[PATH_MAX];
  const int error = path_of_descriptor(fd, path) ? fault(call, path) : 0;
  errno = error != 0 ? error : before;
  return error != 0;
}

// ---- the calls ---------------------------------------------------------------------------------

static int open_at(int folder, const char* path, int flags, va_list rest) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode = creates ? va_arg(rest, mode_t) : 0;
  if (creates && fails_at("open", folder, path)) return -1;
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define DEFINE_OPEN(name)                                \
  int name(const char* path, int flags, ...) {           \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    const int fd = open_at(AT_FDCWD, path, flags, rest); \
    va_end(rest);                                        \
    return fd;                                           \
  }

#define DEFINE_OPENAT(name)                                \
  int name(int folder, const char* path, int flags, ...) { \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    const int fd = open_at(folder, path, flags, rest);     \
    va_end(rest);                                          \
    return fd;                                             \
  }

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

ssize_t write(int fd, const void* bytes, size_t size) {
  return fails_on("write", fd) ? -1 : syscall(SYS_write, fd, bytes, size);
}

int fsync(int fd) { return fails_on("fsync", fd) ? -1 : (int)syscall(SYS_fsync, fd); }

int fdatasync(int fd) { return fails_on("fsync", fd) ? -1 : (int)syscall(SYS_fdatasync, fd); }

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (fails_at("rename", from_folder, from)) return -1;
  return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char* from, const char* to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int mkdirat(int folder, const char* path, mode_t mode) {
  return fails_at("mkdir", folder, path) ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode);
}

int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int folder, const char* path, int flags) {
  return fails_at("remove", folder, path) ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

// Of files and folders; one call, although the C library makes two.
int remove(const char* path) {
  if (fails_at("remove", AT_FDCWD, path)) return -1;
  const long removed = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (removed == 0 || (errno != EISDIR && errno != EPERM)) return (int)removed;
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
