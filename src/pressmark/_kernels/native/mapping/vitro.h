/* Vitro file storage: paths of three-character groups, and file names. */
#ifndef PRESSMARK_VITRO_H
#define PRESSMARK_VITRO_H

#include "kernel.h"

/* Prefixes are single ASCII letters or digits: at most 62, in ascending order, so that the first match is the lowest. */
#define PM_VITRO_NAMESPACES 62

typedef struct {
    uint8_t prefix;
    const uint8_t *namespace_;
    int64_t length;
} pm_vitro_namespace;

typedef struct {
    pm_vitro_namespace namespaces[PM_VITRO_NAMESPACES];
    int count;
} pm_vitro;

int pm_vitro_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
/* The lenient half of the inverse; pm_check_inverse is the strict half. */
int pm_vitro_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_vitro_encode_filename(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_vitro_decode_filename(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#endif
