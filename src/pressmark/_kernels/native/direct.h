/* OCFL 0002: the identifier is the path, if it is a safe one. */
#ifndef PRESSMARK_DIRECT_H
#define PRESSMARK_DIRECT_H

#include "text.h"

static int pm_direct_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    int status = pm_check_utf8(item, length, work);
    if (status == 0)
        status = pm_check_path(item, length, work);
    return status != 0 ? status : pm_append(work->out, item, length);
}

#endif
