/* Validates bags of few small files, many in one call. */
#ifndef PRESSMARK_SMALL_BAGS_H
#define PRESSMARK_SMALL_BAGS_H

#include <stdint.h>

#include "lanes/lanes.h"

typedef struct {
    int64_t files, bytes; /* of the payload */
    int64_t tag_files;    /* -1: not a plain bag, or not valid */
    int64_t long_lines, first_long; /* number of the lines of bag-info.txt that are too long, and the first of them, from 1 */
} pm_bag_counts;

/* Sets the counts of each bag that is plain and valid, without any problem but long lines; the others need the full
 * validation.
 *
 * A plain bag has version 0.97 or 1.0 in UTF-8, no fetch.txt, at least one payload file, only small files as for
 * pm_folder_read, and manifests with one plain line for each file: all payload manifests list all payload files, and the tag
 * manifests, if any, have the same algorithms and list all tag files but each other. The elements of bag-info.txt are well-formed.
 *
 * Returns how many were tried before the end of PM_TURN, or -1 if memory runs out. */
int pm_check_small_bags(pm_level level, const char *const *paths, int count, pm_bag_counts *counts);

#endif
