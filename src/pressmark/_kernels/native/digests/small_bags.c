#include "small_bags.h"

#include <stdlib.h>
#include <string.h>

#include "../shared/clock.h"
#include "../shared/tables.h"
#include "../shared/text.h"
#include "small_folder.h"

#define DATA (2 * PM_FOLDER_BYTES) /* bytes of the files of a batch, which stay in the cache */
#define MESSAGES 1024
#define BAGS 64
#define LINE_LENGTH 79 /* characters of a line of bag-info.txt */

static const struct {
    pm_algorithm algorithm;
    const char *name;
} ALGORITHM[] = {{PM_MD5, "md5"}, {PM_SHA1, "sha1"}, {PM_SHA256, "sha256"}, {PM_SHA384, "sha384"}, {PM_SHA512, "sha512"}};
#define ALGORITHMS ((int)(sizeof ALGORITHM / sizeof *ALGORITHM))

typedef struct {
    int first; /* number of its first message */
    unsigned algorithms;
    pm_bag_counts *counts;
} small_bag;

/* Bags that were read and whose files are hashed together. Each file is a message. */
typedef struct {
    int bags, messages;
    small_bag bag[BAGS];
    int64_t offsets[MESSAGES + 1];
    int32_t expected[MESSAGES][ALGORITHMS]; /* offset of the checksum in a manifest; -1 if it is not listed */
    uint8_t data[DATA];
    uint8_t digests[MESSAGES * PM_MAXIMUM_DIGEST_SIZE];
    pm_folder folder;
    unsigned listed[PM_FOLDER_ENTRIES]; /* the algorithms of the manifests that list the entry */
} bag_batch;

typedef struct {
    const uint8_t *text, *end;
} span;

/* Removes the first line, without its end. Returns 0 if the line has no end or contains other control characters. */
static int take_line(span *rest, span *line)
{
    const uint8_t *stop = rest->text;
    while (stop < rest->end && (*stop >= 0x20 || *stop == '\t') && *stop != 0x7f) stop++;
    if (stop == rest->end || *stop != '\n') return 0;
    *line = (span){rest->text, stop};
    rest->text = stop + 1;
    return 1;
}

static int is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static int is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static int is_alphanumeric(uint8_t byte)
{
    return is_digit(byte) || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

/* Removes a number of at most 18 digits; returns -1 if there is none. */
static int64_t take_number(span *rest)
{
    int64_t value = 0;
    int digits = 0;
    for (; rest->text < rest->end && is_digit(*rest->text); rest->text++) {
        value = 10 * value + (*rest->text - '0');
        if (++digits > 18) return -1;
    }
    return digits ? value : -1;
}

/* --- bagit.txt and bag-info.txt ------------------------------------------------------------------------------------ */

static int is_declaration(span text)
{
    static const char *const usual[] = {"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
                                        "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n"};
    const size_t size = (size_t)(text.end - text.text);
    for (int i = 0; i < 2; i++)
        if (size == strlen(usual[i]) && !memcmp(text.text, usual[i], size)) return 1;
    return 0;
}

static int is_date(span value)
{
    static const char form[] = "0000-00-00";
    const uint8_t *text = value.text;
    int month, day;
    if (value.end - text != 10 || !memcmp(text, form, 4)) return 0;
    for (int i = 0; i < 10; i++)
        if (form[i] == '0' ? !is_digit(text[i]) : text[i] != '-') return 0;
    month = 10 * (text[5] - '0') + (text[6] - '0');
    day = 10 * (text[8] - '0') + (text[9] - '0');
    if (month < 1 || month > 12 || day < 1) return 0;
    /* The 29th of February is left to the full validation. */
    return day <= (month == 2 ? 28 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31);
}

/* A number, a space and a unit. */
static int is_size(span value)
{
    if (take_number(&value) < 0) return 0;
    if (value.text < value.end && *value.text == '.') {
        value.text++;
        if (take_number(&value) < 0) return 0;
    }
    if (value.text == value.end || *value.text++ != ' ' || value.text == value.end) return 0;
    if (*value.text != 'B' && !strchr("KMGTPE", *value.text++)) return 0;
    return value.end - value.text == 1 && *value.text == 'B';
}

static int is_oxum(span value, const pm_bag_counts *counts)
{
    const int64_t bytes = take_number(&value);
    if (bytes != counts->bytes || value.text == value.end || *value.text++ != '.') return 0;
    return take_number(&value) == counts->files && value.text == value.end;
}

/* Returns whether the line's label is this one, in any case. */
static int has_label(span line, const char *label)
{
    const size_t length = strlen(label);
    if ((size_t)(line.end - line.text) <= length || line.text[length] != ':') return 0;
    for (size_t i = 0; i < length; i++)
        if ((line.text[i] | 0x20) != (label[i] | 0x20)) return 0;
    return 1;
}

/* Returns whether the elements are well-formed, and Payload-Oxum matches the payload. */
static int is_plain_info(span text, pm_bag_counts *counts)
{
    static const char *const labels[] = {"Bagging-Date", "Bag-Size", "Payload-Oxum"};
    int64_t number = 0;
    int seen = 0;
    int open = 0; /* the value may continue */
    span line;
    if (pm_invalid_utf8(text.text, text.end - text.text) >= 0) return 0;
    while (text.text < text.end) {
        const uint8_t *colon;
        int64_t characters = 0;
        span value;
        if (!take_line(&text, &line)) return 0;
        for (const uint8_t *byte = line.text; byte < line.end; byte++) characters += (*byte & 0xc0) != 0x80;
        number++;
        if (characters > LINE_LENGTH && !counts->long_lines++) counts->first_long = number;
        if (characters == 0) return 0;
        if (is_blank(line.text[0])) {
            const uint8_t *byte = line.text;
            while (byte < line.end && is_blank(*byte)) byte++;
            if (!open || byte == line.end) return 0;
            continue;
        }
        colon = (const uint8_t *)memchr(line.text, ':', (size_t)(line.end - line.text));
        if (!colon || colon == line.text || colon[-1] == ' ' || line.end - colon < 3) return 0;
        for (const uint8_t *byte = line.text; byte < colon; byte++)
            if (*byte < 0x20 || *byte > 0x7e) return 0;
        if (!is_blank(colon[1]) || is_blank(colon[2])) return 0;
        value = (span){colon + 2, line.end};
        if (has_label(line, "Bag-Count") || has_label(line, "Bag-Group-Identifier")) return 0;
        open = 1;
        for (int i = 0; i < 3; i++) {
            if (!has_label(line, labels[i])) continue;
            if (seen & 1 << i || !(i == 0 ? is_date(value) : i == 1 ? is_size(value) : is_oxum(value, counts))) return 0;
            seen |= 1 << i;
            open = 0;
        }
    }
    return 1;
}

/* --- manifests ----------------------------------------------------------------------------------------------------- */

static int begins_with(const char *path, const char *prefix)
{
    return !strncmp(path, prefix, strlen(prefix));
}

static int is_payload(const pm_folder_entry *entry)
{
    return begins_with(entry->path, "data/");
}

/* Returns the number of the algorithm of a manifest; -1 if it is not one of ours. `rest` follows "manifest-". */
static int algorithm_of(const char *rest)
{
    for (int i = 0; i < ALGORITHMS; i++) {
        const size_t length = strlen(ALGORITHM[i].name);
        if (!strncmp(rest, ALGORITHM[i].name, length) && !strcmp(rest + length, ".txt")) return i;
    }
    return -1;
}

static int find_entry(const pm_folder *folder, span path)
{
    const size_t length = (size_t)(path.end - path.text);
    const uint32_t key = pm_folder_key((const char *)path.text, length);
    for (int i = 0; i < folder->count; i++)
        if (folder->entry[i].key == key && folder->entry[i].length == length
            && !memcmp(folder->entry[i].path, path.text, length))
            return i;
    return -1;
}

/* Notes the checksums of a manifest. Returns 0 if a line is not plain, or lists a file again, or a file that does not exist or
 * that a manifest of this kind must not list. */
static int read_manifest(bag_batch *batch, const pm_folder_entry *manifest, int algorithm, int of_tags)
{
    const int64_t digits = 2 * (int64_t)pm_digest_size(ALGORITHM[algorithm].algorithm);
    span rest = {batch->data + manifest->begin, batch->data + manifest->begin + manifest->size}, line;
    while (rest.text < rest.end) {
        const pm_folder_entry *entry;
        const uint8_t *text;
        int found;
        if (!take_line(&rest, &line) || line.end - line.text < digits + 2) return 0;
        for (int64_t i = 0; i < digits; i++)
            if (pm_hex_value[line.text[i]] > 15) return 0;
        text = line.text + digits;
        if (!is_blank(*text++)) return 0;
        text += is_blank(*text);
        if ((found = find_entry(&batch->folder, (span){text, line.end})) < 0) return 0;
        entry = &batch->folder.entry[found];
        if (entry->file < 0 || is_payload(entry) == of_tags || begins_with(entry->path, "tagmanifest-")) return 0;
        if (batch->listed[found] & 1u << algorithm) return 0;
        batch->listed[found] |= 1u << algorithm;
        batch->expected[batch->messages + entry->file][algorithm] = (int32_t)(line.text - batch->data);
    }
    return 1;
}

/* --- bags ---------------------------------------------------------------------------------------------------------- */

/* Checks everything but the checksums of the bag that was read last. Returns 0 if it is not plain and valid. */
static int read_bag(bag_batch *batch, small_bag *bag, pm_bag_counts *counts)
{
    const pm_folder *folder = &batch->folder;
    const pm_folder_entry *declaration = NULL, *info = NULL;
    unsigned algorithms = 0, of_tags = 0;
    int has_payload = 0;
    memset(batch->listed, 0, sizeof batch->listed);
    memset(batch->expected[batch->messages], 0xff, (size_t)folder->files * sizeof *batch->expected);
    *counts = (pm_bag_counts){0};
    for (int i = 0; i < folder->count; i++) {
        const pm_folder_entry *entry = &folder->entry[i];
        const int tag = begins_with(entry->path, "tagmanifest-");
        if (is_payload(entry)) {
            counts->files += entry->file >= 0;
            counts->bytes += entry->file >= 0 ? entry->size : 0;
            continue;
        }
        /* Neither a hidden file nor an unsafe path. */
        if (!is_alphanumeric((uint8_t)entry->path[0]) || entry->path[1] == ':') return 0;
        if (entry->file < 0) {
            has_payload |= !strcmp(entry->path, "data");
            if (begins_with(entry->path, "manifest-") || tag || strstr(entry->path, ".txt")) return 0;
            continue;
        }
        counts->tag_files++;
        if (!strcmp(entry->path, "data") || !strcmp(entry->path, "fetch.txt") || !strcmp(entry->path, "package-info.txt"))
            return 0;
        if (!strcmp(entry->path, "bagit.txt")) declaration = entry;
        if (!strcmp(entry->path, "bag-info.txt")) info = entry;
        if (tag || begins_with(entry->path, "manifest-")) {
            const int algorithm = algorithm_of(strchr(entry->path, '-') + 1);
            if (algorithm < 0 || !read_manifest(batch, entry, algorithm, tag)) return 0;
            *(tag ? &of_tags : &algorithms) |= 1u << algorithm;
        }
    }
    if (!has_payload || !counts->files || !declaration || !algorithms || (of_tags && of_tags != algorithms)) return 0;
    for (int i = 0; i < folder->count; i++) {
        const pm_folder_entry *entry = &folder->entry[i];
        if (entry->file < 0 || begins_with(entry->path, "tagmanifest-")) continue;
        if (batch->listed[i] != (is_payload(entry) ? algorithms : of_tags)) return 0;
    }
    if (!is_declaration((span){batch->data + declaration->begin, batch->data + declaration->begin + declaration->size}))
        return 0;
    if (info && !is_plain_info((span){batch->data + info->begin, batch->data + info->begin + info->size}, counts)) return 0;
    *bag = (small_bag){batch->messages, algorithms, counts};
    return 1;
}

static int is_digest(const uint8_t *digest, const uint8_t *hex, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (digest[i] != (pm_hex_value[hex[2 * i]] << 4 | pm_hex_value[hex[2 * i + 1]])) return 0;
    return 1;
}

/* Hashes the files of bags [first .. end), which have the same algorithms, and compares the checksums. */
static void check_digests(bag_batch *batch, pm_level level, int first, int end)
{
    const int begin = batch->bag[first].first;
    const int stop = end < batch->bags ? batch->bag[end].first : batch->messages;
    for (int i = 0; i < ALGORITHMS; i++) {
        const size_t size = pm_digest_size(ALGORITHM[i].algorithm);
        int bag = first;
        if (!(batch->bag[first].algorithms & 1u << i)) continue;
        pm_digest_column(level, ALGORITHM[i].algorithm, batch->data, batch->offsets + begin, stop - begin, batch->digests);
        for (int message = begin; message < stop; message++) {
            const int32_t expected = batch->expected[message][i];
            while (bag + 1 < end && batch->bag[bag + 1].first <= message) bag++;
            if (expected >= 0
                && !is_digest(batch->digests + (size_t)(message - begin) * size, batch->data + expected, size))
                batch->bag[bag].counts->tag_files = -1;
        }
    }
}

static void check_batch(bag_batch *batch, pm_level level)
{
    for (int first = 0, end; first < batch->bags; first = end) {
        for (end = first + 1; end < batch->bags; end++)
            if (batch->bag[end].algorithms != batch->bag[first].algorithms) break;
        check_digests(batch, level, first, end);
    }
    batch->bags = batch->messages = 0;
}

int pm_check_small_bags(pm_level level, const char *const *paths, int count, pm_bag_counts *counts)
{
    const int64_t latest = pm_now() + PM_TURN;
    int i = 0;
    bag_batch *batch = (bag_batch *)malloc(sizeof *batch);
    if (!batch) return -1;
    batch->bags = batch->messages = 0;
    batch->offsets[0] = 0;
    for (; i < count && (!i || pm_now() < latest); i++) {
        int64_t end;
        /* There is room for a usual bag. */
        if (batch->bags == BAGS || batch->messages > MESSAGES - PM_FOLDER_ENTRIES
            || batch->offsets[batch->messages] > DATA - PM_FOLDER_BYTES)
            check_batch(batch, level);
        end = pm_folder_read(&batch->folder, PM_CURRENT, paths[i], NULL, batch->data, batch->offsets[batch->messages],
                             batch->offsets[batch->messages] + PM_FOLDER_BYTES);
        counts[i].tag_files = -1;
        if (end < 0) continue;
        for (int j = 0; j < batch->folder.count; j++) {
            const pm_folder_entry *entry = &batch->folder.entry[j];
            if (entry->file >= 0) batch->offsets[batch->messages + entry->file] = entry->begin;
        }
        batch->offsets[batch->messages + batch->folder.files] = end;
        if (!read_bag(batch, &batch->bag[batch->bags], &counts[i])) {
            counts[i].tag_files = -1;
            continue;
        }
        batch->messages += batch->folder.files;
        batch->bags++;
    }
    check_batch(batch, level);
    free(batch);
    return i;
}
