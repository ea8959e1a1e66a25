/* Writes down every change that a process makes below TAP_ROOT, with its bytes, in the order it was made.

   cc -shared -fPIC -o tap.so tap.c; LD_PRELOAD=tap.so TAP_ROOT=/folder TAP_LOG=/log python …

   A record: one letter, two numbers of 64 bits, the sizes of two texts, the texts (tests/store/power.py reads them).
   TAP_DIE_AT=n kills the process when it has made n changes, before the next. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATH 4096
#define REAL(name) ({ if (!real) real = dlsym(RTLD_NEXT, #name); (__typeof__(&name))real; })
#define OWN static void *real

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int disk = -1;
static long changes, die_at;
static const char *root;

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("TAP_LOG"), *at = getenv("TAP_DIE_AT");
    root = getenv("TAP_ROOT");
    die_at = at ? atol(at) : 0;
    if (log && root) disk = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int below(const char *path) {
    size_t size = root ? strlen(root) : 0;
    return disk >= 0 && size && !strncmp(path, root, size) && path[size] == '/';
}

static const char *of(int fd, char *to) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, to, PATH - 1);
    to[size < 0 ? 0 : size] = 0;
    return to;
}

static const char *at(int folder, const char *path, char *to) {
    char base[PATH];
    if (path[0] == '/') return snprintf(to, PATH, "%s", path), to;
    if (folder != AT_FDCWD) of(folder, base);
    else if (!getcwd(base, PATH)) base[0] = 0;
    return snprintf(to, PATH, "%.2000s/%.2000s", base, path), to;
}

static void say(char what, long one, long two, const void *text, size_t size, const void *more, size_t many) {
    long numbers[4] = {one, two, (long)size, (long)many};
    struct iovec all[] = {{&what, 1}, {numbers, sizeof numbers}, {(void *)text, size}, {(void *)more, many}};
    int before = errno;
    changes++;
    if (syscall(SYS_writev, disk, all, 4) != (long)(1 + sizeof numbers + size + many)) abort();
    errno = before;
}

static void enter(void) {
    pthread_mutex_lock(&lock);
    if (die_at && changes >= die_at) kill(getpid(), SIGKILL);
}

static long inode(int fd) {
    struct stat found;
    return fstat(fd, &found) ? -1 : (long)found.st_ino;
}

static int opened(int (*real)(int, const char *, int, ...), int folder, const char *path, int flags, mode_t mode) {
    char name[PATH];
    if (!(flags & (O_CREAT | O_TRUNC)) || !below(at(folder, path, name))) return real(folder, path, flags, mode);
    enter();
    int fd = real(folder, path, flags, mode);
    if (fd >= 0) say('o', inode(fd), flags & O_TRUNC, name, strlen(name), "", 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE va_list rest; va_start(rest, flags); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest)
int openat(int folder, const char *path, int flags, ...) { OWN; MODE; return opened(REAL(openat), folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { OWN; MODE; return opened(REAL(openat64), folder, path, flags, mode); }
int open(const char *path, int flags, ...) { OWN; MODE; (void)real; return openat(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { OWN; MODE; (void)real; return openat64(AT_FDCWD, path, flags, mode); }

/* bytes of a file: where they went is asked of the system afterwards */
#define TO_FILE(call, where) { OWN; char name[PATH]; if (!below(of(fd, name))) return call; enter(); \
    ssize_t done = call; if (done >= 0) say('w', inode(fd), (long)(where), bytes, done, "", 0); \
    pthread_mutex_unlock(&lock); return done; }
ssize_t write(int fd, const void *bytes, size_t size) TO_FILE(REAL(write)(fd, bytes, size), lseek(fd, 0, SEEK_CUR) - done)
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t to) TO_FILE(REAL(pwrite)(fd, bytes, size, to), to)
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t to) TO_FILE(REAL(pwrite64)(fd, bytes, size, to), to)

/* copies inside the system are refused: whoever copies then reads and writes */
ssize_t sendfile(int out, int in, off_t *from, size_t size) { (void)out, (void)in, (void)from, (void)size; errno = ENOTSOCK; return -1; }
ssize_t sendfile64(int out, int in, off64_t *from, size_t size) { (void)out, (void)in, (void)from, (void)size; errno = ENOTSOCK; return -1; }

#define ON_FILE(what, call, size) { OWN; char name[PATH]; if (!below(of(fd, name))) return call; enter(); \
    int done = call; if (!done) say(what, inode(fd), (long)(size), name, strlen(name), "", 0); \
    pthread_mutex_unlock(&lock); return done; }
int ftruncate(int fd, off_t size) ON_FILE('t', REAL(ftruncate)(fd, size), size)
int ftruncate64(int fd, off64_t size) ON_FILE('t', REAL(ftruncate64)(fd, size), size)
int posix_fallocate(int fd, off_t from, off_t size) ON_FILE('a', REAL(posix_fallocate)(fd, from, size), from + size)
int posix_fallocate64(int fd, off64_t from, off64_t size) ON_FILE('a', REAL(posix_fallocate64)(fd, from, size), from + size)
int fsync(int fd) ON_FILE('s', REAL(fsync)(fd), 0)
int fdatasync(int fd) ON_FILE('s', REAL(fdatasync)(fd), 0)

#define TRUNCATED(call) { OWN; char name[PATH]; struct stat found; if (!below(at(AT_FDCWD, path, name))) return call; enter(); \
    int done = call; if (!done && !stat(path, &found)) say('t', found.st_ino, (long)size, name, strlen(name), "", 0); \
    pthread_mutex_unlock(&lock); return done; }
int truncate(const char *path, off_t size) TRUNCATED(REAL(truncate)(path, size))
int truncate64(const char *path, off64_t size) TRUNCATED(REAL(truncate64)(path, size))

/* names */
#define ONE(what, folder, path, call) { OWN; char name[PATH]; if (!below(at(folder, path, name))) return call; enter(); \
    int done = call; if (!done) say(what, 0, 0, name, strlen(name), "", 0); pthread_mutex_unlock(&lock); return done; }
int unlink(const char *path) ONE('u', AT_FDCWD, path, REAL(unlink)(path))
int unlinkat(int folder, const char *path, int flags) ONE('u', folder, path, REAL(unlinkat)(folder, path, flags))
int rmdir(const char *path) ONE('u', AT_FDCWD, path, REAL(rmdir)(path))
int mkdir(const char *path, mode_t mode) ONE('m', AT_FDCWD, path, REAL(mkdir)(path, mode))
int mkdirat(int folder, const char *path, mode_t mode) ONE('m', folder, path, REAL(mkdirat)(folder, path, mode))

#define TWO(what, first, one, second, two, call) { OWN; char a[PATH], b[PATH]; at(first, one, a), at(second, two, b); \
    if (!below(a) && !below(b)) return call; enter(); int done = call; \
    if (!done) say(what, 0, 0, a, strlen(a), b, strlen(b)); pthread_mutex_unlock(&lock); return done; }
int rename(const char *one, const char *two) TWO('r', AT_FDCWD, one, AT_FDCWD, two, REAL(rename)(one, two))
int renameat(int f, const char *one, int g, const char *two) TWO('r', f, one, g, two, REAL(renameat)(f, one, g, two))
int renameat2(int f, const char *one, int g, const char *two, unsigned int flags)
    TWO(flags & 2 ? 'x' : 'r', f, one, g, two, REAL(renameat2)(f, one, g, two, flags))
int link(const char *one, const char *two) TWO('l', AT_FDCWD, one, AT_FDCWD, two, REAL(link)(one, two))
int linkat(int f, const char *one, int g, const char *two, int flags) TWO('l', f, one, g, two, REAL(linkat)(f, one, g, two, flags))
