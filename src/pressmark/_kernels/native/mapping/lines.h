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

/* Finds the rows of CSV and TSV: writes the offset after the line feed of each to `ends`, which has room for one per line
 * feed, and returns their number. With `quotes`, a field that starts with a quote extends to the closing quote, with line
 * feeds inside. The last row may be incomplete: it has no end. */
int64_t pm_find_rows(const uint8_t *text, int64_t size, uint8_t separator, int quotes, int64_t *ends);
/* How often a byte is in a text. */
int64_t pm_count_byte(const uint8_t *text, int64_t size, uint8_t byte);

/* Copies the value of field `index` of each row. A carriage return before the line feed belongs to the end of the row.
 * Returns 1; 0 if a row does not have `width` fields or text follows the closing quote of the field, or PM_NO_MEMORY. */
int pm_cut_fields(const uint8_t *rows, int64_t size, uint8_t separator, int quotes, int64_t index, int64_t width,
                  pm_column *out);

/* The size of `size` bytes of rows with items as new last fields. With `quotes`, fields are written as in CSV. */
int64_t pm_joined_size(int64_t size, const pm_column *items, uint8_t separator, int quotes);
/* Writes each row with its item as a new last field; `ends` are the offsets after the line feed of each row. */
void pm_join_rows(const uint8_t *rows, int64_t size, const int64_t *ends, const pm_column *items, uint8_t separator,
                  int quotes, uint8_t *out);

#endif
