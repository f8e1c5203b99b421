/* Names that systems reject. */
#ifndef PRESSMARK_SYSTEMS_H
#define PRESSMARK_SYSTEMS_H

#include "../shared/column.h"

/* Writes the indices of suspicious paths to `found`, which has room for all, and returns their number. */
int64_t pm_suspicious(const pm_column *paths, const uint8_t *classes, int64_t longest_segment, int64_t longest_path,
                        int devices, int64_t *found, int64_t *advised);

#endif
