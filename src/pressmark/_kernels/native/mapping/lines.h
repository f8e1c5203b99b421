/* Delimited text in and out of columns. */
#ifndef PRESSMARK_LINES_H
#define PRESSMARK_LINES_H

#include "../shared/column.h"

/* Cuts a block at every delimiter; the last item may lack it. */
int pm_cut_lines(const uint8_t *block, int64_t size, uint8_t delimiter, pm_column *out);

/* Appends every item and the delimiter, except those whose ascending index is in `skip`; with `before` not NULL each line
 * begins with its item and a TAB. */
int pm_join_lines(const pm_column *before, const pm_column *items, uint8_t delimiter, const int64_t *skip,
                  int64_t skip_count, pm_bytes *out);

#endif
