/* The walk of a Pairtree as far as it is plain: see pure/pairtree_scan.py, which says what is deferred.
 *
 * Nothing here needs the GIL, and several threads may walk different parts. Directories are read by the system call where
 * there is one: a Pairtree has several small directories for each object, and a DIR costs as much as reading one.
 */
#ifndef PRESSMARK_PAIRTREE_SCAN_H
#define PRESSMARK_PAIRTREE_SCAN_H

#include "../shared/column.h"

/* Looks through `paths` below the directory `top` until nothing is left or `budget` directories were read; the three
 * columns are made here. Returns 0 or PM_NO_MEMORY. */
int pm_scan_pairtree(const char *top, const pm_column *paths, int follow, int64_t budget, pm_column *places,
                     pm_column *names, pm_column *rest);

#endif
