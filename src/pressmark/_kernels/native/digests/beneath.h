/* Files opened beneath a directory. */
#ifndef PRESSMARK_BENEATH_H
#define PRESSMARK_BENEATH_H

#include "engine.h"

/* From now on paths are relative to a directory and do not lead out of it. */
void pm_engine_beneath(pm_engine *engine, int directory);

#if PM_FILES_IN_LANES
#include <sys/stat.h>

int pm_engine_open(const pm_engine *engine, const char *path, int flags);
/* What a path leads to now. Returns 0, or -1 where there is nothing. */
int pm_engine_stat(const pm_engine *engine, const char *path, struct stat *status);
#endif

#endif
