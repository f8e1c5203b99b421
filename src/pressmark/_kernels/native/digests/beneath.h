/* Files opened beneath a directory. */
#ifndef PRESSMARK_BENEATH_H
#define PRESSMARK_BENEATH_H

#include "engine.h"

/* Confines all paths to a directory, to which they are relative. */
void pm_engine_beneath(pm_engine *engine, int directory);

#if PM_FILES_IN_LANES
#include <sys/stat.h>

/* A flag beside those of open(): no part of the path is a symbolic link. As in fs/beneath.py. */
#define PM_REAL (1 << 30)
/* Opens a path without following any symbolic link in it. It has no "..". */
int pm_open_real(int directory, const char *path, int flags);

int pm_engine_open(const pm_engine *engine, const char *path, int flags);
/* Gets the status of a path. Returns 0, or -1 if it does not exist. */
int pm_engine_stat(const pm_engine *engine, const char *path, struct stat *status);

/* As in fs/beneath.py: PATH_MAX, which the system does not enforce on a path opened by segments. */
#define PM_LONGEST_PATH 4095

/* The parent directory of the path before. Consecutive files are usually in the same directory. */
typedef struct {
    int descriptor; /* -1: not open */
    int at;         /* what the name of the file is relative to */
    size_t length;
    char path[PM_LONGEST_PATH + 1];
} pm_parent;

/* Returns the name of a file in its parent directory, which is opened: of paths anywhere, for the second file in it, since for
 * one file that would take longer. If it cannot be opened, returns the path. Beneath a directory, returns NULL if the parent
 * cannot be opened, or if the path has an empty segment, "." or "..". */
const char *pm_parent_enter(const pm_engine *engine, pm_parent *parent, const char *path);
void pm_parent_close(const pm_engine *engine, pm_parent *parent);
#endif

#endif
