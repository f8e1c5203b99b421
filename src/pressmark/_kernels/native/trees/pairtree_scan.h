/* The walk of plain Pairtree directories; pure/trees.py defines which directories are deferred.
 *
 * Nothing here needs the GIL, and several threads may walk different parts.
 */
#ifndef PRESSMARK_PAIRTREE_SCAN_H
#define PRESSMARK_PAIRTREE_SCAN_H

#include "../shared/column.h"

/* Reads `paths` below the directory `top` until none is left or `budget` directories were read. Creates the three columns.
 * Returns 0 or PM_NO_MEMORY. */
int pm_scan_pairtree(const char *top, const pm_column *paths, int follow, int64_t budget, pm_column *places,
                     pm_column *names, pm_column *rest);

#endif
