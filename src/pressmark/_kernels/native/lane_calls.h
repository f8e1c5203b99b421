/* The streaming lanes as a table of functions: the module that is linked with them hands it to those that are not. */
#ifndef PRESSMARK_LANE_CALLS_H
#define PRESSMARK_LANE_CALLS_H

#include "lanes/lanes.h"

typedef struct {
    size_t (*digest_size)(pm_algorithm algorithm);
    unsigned (*lanes)(pm_level level, pm_algorithm algorithm);
    void (*init)(pm_bank *bank, pm_level level, pm_algorithm algorithm);
    void (*start)(pm_bank *bank, unsigned lane);
    void (*update)(pm_bank *bank, const uint8_t *const data[], const size_t lengths[]);
    void (*finish_many)(pm_bank *bank, uint32_t lanes, uint8_t *const out[]);
} pm_lane_calls;

#endif
