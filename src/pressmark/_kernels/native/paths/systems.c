#include "systems.h"

enum { PM_REFUSED = 1, PM_NOT_LAST = 2, PM_ADVISED_FIRST = 4 };

/* Whether a segment starts like the name of a device: CON, PRN, AUX, NUL, COM or LPT. */
static inline int pm_begins_as_device(const uint8_t *segment, int64_t length)
{
    if (length < 3)
        return 0;
    static const char names[6][4] = {"con", "prn", "aux", "nul", "com", "lpt"};
    for (int name = 0; name < 6; name++) {
        int position = 0;
        while (position < 3 && (segment[position] | 0x20) == names[name][position] && segment[position] >= 'A')
            position++;
        if (position == 3)
            return 1;
    }
    return 0;
}

/* Whether a path is suspicious. Increments *advised if a segment starts with a discouraged byte. */
static int pm_is_suspicious(const uint8_t *path, int64_t length, const uint8_t *classes, int64_t longest_segment,
                              int64_t longest_path, int devices, int64_t *advised)
{
    int bad = length > longest_path, first = 0;
    uint8_t seen = 0;
    for (int64_t start = 0; start <= length;) {
        int64_t end = start;
        for (; end < length && path[end] != '/'; end++)
            seen |= classes[path[end]];
        const uint8_t *segment = path + start;
        int64_t size = end - start;
        if (size == 0 || size > longest_segment || (segment[0] == '.' && (size == 1 || (size == 2 && segment[1] == '.')))) {
            bad = 1;
        }
        if (size > 0) {
            bad |= classes[segment[size - 1]] & PM_NOT_LAST;
            first |= classes[segment[0]] & PM_ADVISED_FIRST;
            bad |= devices && pm_begins_as_device(segment, size);
        }
        start = end + 1;
    }
    *advised += first != 0;
    return bad || (seen & PM_REFUSED);
}

int64_t pm_suspicious(const pm_column *paths, const uint8_t *classes, int64_t longest_segment, int64_t longest_path,
                        int devices, int64_t *found, int64_t *advised)
{
    int64_t count = 0;
    for (int64_t index = 0; index < paths->count; index++) {
        const uint8_t *path = paths->bytes.data + paths->offsets[index];
        int64_t length = paths->offsets[index + 1] - paths->offsets[index];
        if (pm_is_suspicious(path, length, classes, longest_segment, longest_path, devices, advised))
            found[count++] = index;
    }
    return count;
}
