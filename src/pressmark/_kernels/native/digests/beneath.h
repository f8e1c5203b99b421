/* Files opened beneath a directory. */
#ifndef PRESSMARK_BENEATH_H
#define PRESSMARK_BENEATH_H

#include "engine.h"

/* Confines all paths to a directory, to which they are relative. */
void pm_engine_beneath(pm_engine *engine, int directory);

#if PM_FILES_IN_LANES
#include <sys/stat.h>

int pm_engine_open(const pm_engine *engine, const char *path, int flags);
/* Gets the status of a path. Returns 0, or -1 if it does not exist. */
int pm_engine_stat(const pm_engine *engine, const char *path, struct stat *status);
#endif

/* Gets the sizes of regular files, and -1 for any other path. Beneath a directory, also -1 for a path with an empty segment, "."
 * or "..". */
void pm_engine_sizes(const pm_engine *engine, const char *const *paths, int64_t count, int64_t *sizes);

#endif
