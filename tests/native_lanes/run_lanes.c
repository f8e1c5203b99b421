/* Prints the digests of messages at every level of the processor that this program runs on.
 *   run_lanes LENGTH... < DATA
 * The messages follow each other in DATA. Each line of the output: level, algorithm, and the digests of all messages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

#include "lanes.h"

int main(int count, char **arguments)
{
    const int messages = count - 1;
    int64_t *offsets = calloc((size_t)messages + 1, sizeof *offsets);
    for (int message = 0; message < messages; message++)
        offsets[message + 1] = offsets[message] + atol(arguments[message + 1]);
    uint8_t *data = malloc((size_t)offsets[messages] + 1);
    uint8_t *digests = malloc((size_t)messages * PM_MAXIMUM_DIGEST_SIZE + 1);
#ifdef _WIN32
    _setmode(_fileno(stdin), _O_BINARY);
#endif
    if (fread(data, 1, (size_t)offsets[messages], stdin) != (size_t)offsets[messages])
        return 1;
    for (int level = PM_PORTABLE; level <= (int)pm_best_level(); level++) {
        for (int algorithm = 0; algorithm < PM_ALGORITHMS; algorithm++) {
            const size_t size = (size_t)messages * pm_digest_size((pm_algorithm)algorithm);
            pm_digest_column((pm_level)level, (pm_algorithm)algorithm, data, offsets, messages, digests);
            printf("%s %d ", pm_level_name((pm_level)level), algorithm);
            for (size_t byte = 0; byte < size; byte++)
                printf("%02x", digests[byte]);
            printf("\n");
        }
    }
    free(digests);
    free(data);
    free(offsets);
    return 0;
}
