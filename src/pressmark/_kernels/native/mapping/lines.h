/* Delimited text in and out of columns. */
#ifndef PRESSMARK_LINES_H
#define PRESSMARK_LINES_H

#include "../shared/column.h"

/* Splits a block at each delimiter; the last item need not end with it. */
int pm_cut_lines(const uint8_t *block, int64_t size, uint8_t delimiter, pm_column *out);

/* Appends each item and the delimiter, except items whose ascending index is in `skip`. Unless `before` is NULL, each line
 * starts with its item and a TAB. */
int pm_join_lines(const pm_column *before, const pm_column *items, uint8_t delimiter, const int64_t *skip,
                  int64_t skip_count, pm_bytes *out);

/* Splits rows that each end with a line feed, and copies field `index` of each. A carriage return before the line feed belongs
 * to the end of the row. Returns 1; 0 if a row does not have `width` fields, or PM_NO_MEMORY. */
int pm_cut_fields(const uint8_t *rows, int64_t size, uint8_t separator, int64_t index, int64_t width, pm_column *out);
/* Appends each row with its item as a new last field. With `quotes`, fields are written as in CSV. */
int pm_join_rows(const uint8_t *rows, int64_t size, const pm_column *items, uint8_t separator, int quotes, pm_bytes *out);

#endif
