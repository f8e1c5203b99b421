/* Pairtree V0.1: cleaning, splitting into pairs, and their inverses. */
#ifndef PRESSMARK_PAIRTREE_H
#define PRESSMARK_PAIRTREE_H

#include "kernel.h"
#include "pairtree_vector.h"

typedef struct {
    const uint8_t *prefix;
    int64_t prefix_length;
    int prefix_required;
    pm_pairtree_put put;
} pm_pairtree;

int pm_pairtree_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_pairtree_unmap(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_pairtree_clean(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_pairtree_unclean(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#endif
