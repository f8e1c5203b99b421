/* Changes of files in a directory, in order. */
#ifndef PRESSMARK_FILE_STEPS_H
#define PRESSMARK_FILE_STEPS_H

#include <stdint.h>

/* The numbers are those of records.py. */
enum {
    PM_STEP_MAKE,   /* creates a directory; the umask applies to its mode */
    PM_STEP_MODE,   /* sets the mode of a file or directory */
    PM_STEP_LOCK,   /* creates and locks a file, which must not exist */
    PM_STEP_WRITE,  /* creates a file */
    PM_STEP_MOVE,   /* renames; the new path must not exist */
    PM_STEP_ALONE,  /* fails with EEXIST if a directory contains anything but this name */
    PM_STEP_UNLINK, /* removes a file */
    PM_STEP_RMDIR,  /* removes an empty directory */
    PM_STEP_FLUSH,  /* writes a file to disk, or the entries of a directory */
    PM_STEPS
};

typedef struct {
    int kind;
    const char *path;  /* in the directory; empty for the directory itself */
    const char *other; /* the new path in the directory, the only name, or the content */
    int64_t size;      /* of the content, or the mode */
} pm_step;

/* Changes a file in directory `base`. Returns 0 or errno. PM_STEP_LOCK sets `lock` to the descriptor, which the caller closes. */
int pm_step_run(const char *base, const pm_step *step, int *lock);

#endif
