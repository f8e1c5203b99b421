#include "ocfl/inventory.h"

#include "shared/text.h"

#define PM_OCFL_HEX 128 /* digits of a SHA-512 */

/* --- JSON ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at, *end;
} pm_json;

static void pm_skip_space(pm_json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
}

/* Functions named pm_read_… return 1 if they have read what they expect. */
static int pm_read_token(pm_json *json, uint8_t token)
{
    pm_skip_space(json);
    if (json->at == json->end || *json->at != token)
        return 0;
    json->at++;
    return 1;
}

/* Without escapes. */
static int pm_read_string(pm_json *json, pm_ocfl_string *string)
{
    if (!pm_read_token(json, '"'))
        return 0;
    const uint8_t *at = json->at;
    while (at < json->end && *at != '"' && *at != '\\' && *at >= 0x20)
        at++;
    if (at == json->end || *at != '"')
        return 0;
    string->text = json->at;
    string->size = at - json->at;
    string->digest = NULL;
    json->at = at + 1;
    return 1;
}

/* Reads a key and its colon, or the end of the object. Returns 1, 0 at the end, or -1. `count`: of keys so far, 0 after the opening
 * brace. */
static int pm_next_key(pm_json *json, int64_t *count, pm_ocfl_string *key)
{
    if (pm_read_token(json, '}'))
        return 0;
    if ((*count)++ > 0 && !pm_read_token(json, ','))
        return -1;
    return pm_read_string(json, key) && pm_read_token(json, ':') ? 1 : -1;
}

/* As pm_next_key, for an array of strings. */
static int pm_next_item(pm_json *json, int64_t *count, pm_ocfl_string *item)
{
    if (pm_read_token(json, ']'))
        return 0;
    if ((*count)++ > 0 && !pm_read_token(json, ','))
        return -1;
    return pm_read_string(json, item) ? 1 : -1;
}

static int pm_is_text(const pm_ocfl_string *string, const char *text)
{
    return string->size == (int64_t)strlen(text) && memcmp(string->text, text, (size_t)string->size) == 0;
}

/* Returns the index of a key among `names`, or -1 if it is unknown or `seen` contains it already. */
static int pm_find_key(const pm_ocfl_string *key, const char *const *names, int count, int *seen)
{
    for (int i = 0; i < count; i++)
        if (pm_is_text(key, names[i])) {
            if (*seen & 1 << i)
                return -1;
            *seen |= 1 << i;
            return i;
        }
    return -1;
}

/* --- values -------------------------------------------------------------------------------------------------- */

static int pm_is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static int pm_is_letter(uint8_t byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

/* RFC 3986, section 2, as in the full examination: a scheme, a colon, and at least one more character. */
static int pm_is_uri(const pm_ocfl_string *string)
{
    const uint8_t *text = string->text;
    int64_t at = 0;
    if (string->size == 0 || !pm_is_letter(text[0]))
        return 0;
    while (at < string->size
           && (pm_is_letter(text[at]) || pm_is_digit(text[at]) || text[at] == '+' || text[at] == '.' || text[at] == '-'))
        at++;
    if (at == string->size || text[at] != ':' || ++at == string->size)
        return 0;
    for (; at < string->size; at++) {
        const uint8_t byte = text[at];
        if (byte == '%') {
            if (pm_hex_pair(text + at + 1, string->size - at - 1) < 0)
                return 0;
            at += 2;
        } else if (!pm_is_letter(byte) && !pm_is_digit(byte) && (byte == 0 || strchr("-._~:/?#[]@!$&'()*+,;=", byte) == NULL)) {
            return 0;
        }
    }
    return 1;
}

/* Returns the number in `count` digits at `*at`, and moves on, or -1. */
static int pm_read_number(const uint8_t **at, const uint8_t *end, int count)
{
    int number = 0;
    if (end - *at < count)
        return -1;
    for (int i = 0; i < count; i++, (*at)++) {
        if (!pm_is_digit(**at))
            return -1;
        number = 10 * number + (**at - '0');
    }
    return number;
}

static int pm_read_mark(const uint8_t **at, const uint8_t *end, uint8_t upper, uint8_t lower)
{
    if (*at == end || (**at != upper && **at != lower))
        return 0;
    (*at)++;
    return 1;
}

static int pm_is_between(int number, int least, int most)
{
    return number >= least && number <= most;
}

/* RFC 3339, section 5.6: date-time, of the years 1 to 9999. */
static int pm_is_date_time(const pm_ocfl_string *string)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const uint8_t *at = string->text, *end = at + string->size;
    const int year = pm_read_number(&at, end, 4);
    if (year < 1 || !pm_read_mark(&at, end, '-', '-'))
        return 0;
    const int month = pm_read_number(&at, end, 2);
    if (!pm_is_between(month, 1, 12) || !pm_read_mark(&at, end, '-', '-'))
        return 0;
    const int is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (!pm_is_between(pm_read_number(&at, end, 2), 1, days[month - 1] + (month == 2 && is_leap)))
        return 0;
    if (!pm_read_mark(&at, end, 'T', 't') || !pm_is_between(pm_read_number(&at, end, 2), 0, 23))
        return 0;
    if (!pm_read_mark(&at, end, ':', ':') || !pm_is_between(pm_read_number(&at, end, 2), 0, 59))
        return 0;
    if (!pm_read_mark(&at, end, ':', ':') || !pm_is_between(pm_read_number(&at, end, 2), 0, 60))
        return 0;
    if (pm_read_mark(&at, end, '.', '.')) {
        if (at == end || !pm_is_digit(*at))
            return 0;
        while (at < end && pm_is_digit(*at))
            at++;
    }
    if (pm_read_mark(&at, end, 'Z', 'z'))
        return at == end;
    if (!pm_read_mark(&at, end, '+', '-') || !pm_is_between(pm_read_number(&at, end, 2), 0, 23))
        return 0;
    return pm_read_mark(&at, end, ':', ':') && pm_is_between(pm_read_number(&at, end, 2), 0, 59) && at == end;
}

/* Whether no element of a path is empty, "." or "..". */
static int pm_is_logical_path(const pm_ocfl_string *path)
{
    int64_t start = 0;
    for (int64_t at = 0; at <= path->size; at++) {
        if (at < path->size && path->text[at] != '/')
            continue;
        const int64_t size = at - start;
        if (size == 0 || (size <= 2 && path->text[start] == '.' && path->text[at - 1] == '.'))
            return 0;
        start = at + 1;
    }
    return 1;
}

static int pm_is_digest(const pm_ocfl_string *string)
{
    if (string->size != PM_OCFL_HEX)
        return 0;
    for (int i = 0; i < PM_OCFL_HEX; i++)
        if (!pm_is_digit(string->text[i]) && (string->text[i] < 'a' || string->text[i] > 'f'))
            return 0;
    return 1;
}

/* --- manifest and state -------------------------------------------------------------------------------------- */

static int pm_add_path(pm_ocfl_block *block, const pm_ocfl_string *path, const uint8_t *digest)
{
    if (pm_reserve_items(&block->paths, &block->paths_capacity, block->paths_count + 1, sizeof *block->paths) < 0)
        return PM_NO_MEMORY;
    block->paths[block->paths_count] = *path;
    block->paths[block->paths_count++].digest = digest;
    return 1;
}

/* Reads a manifest or a state: each digest has paths. Returns 1, 0 or PM_NO_MEMORY. */
static int pm_read_block(pm_json *json, pm_ocfl_block *block)
{
    pm_ocfl_string key, path;
    int64_t keys = 0;
    int found;
    block->digests_count = block->paths_count = 0;
    if (!pm_read_token(json, '{'))
        return 0;
    while ((found = pm_next_key(json, &keys, &key)) > 0) {
        int64_t paths = 0;
        if (!pm_is_digest(&key) || !pm_read_token(json, '['))
            return 0;
        if (pm_reserve_items(&block->digests, &block->digests_capacity, block->digests_count + 1, sizeof *block->digests) < 0)
            return PM_NO_MEMORY;
        block->digests[block->digests_count++] = key.text;
        while ((found = pm_next_item(json, &paths, &path)) > 0)
            if (pm_add_path(block, &path, key.text) < 0)
                return PM_NO_MEMORY;
        if (found < 0 || paths == 0)
            return 0;
    }
    return found == 0;
}

static int pm_compare_digests(const void *one, const void *other)
{
    return memcmp(*(const uint8_t *const *)one, *(const uint8_t *const *)other, PM_OCFL_HEX);
}

/* In this order, the paths in a directory follow its own path. */
static int pm_compare_paths(const void *one, const void *other)
{
    const pm_ocfl_string *left = (const pm_ocfl_string *)one, *right = (const pm_ocfl_string *)other;
    const int64_t size = left->size < right->size ? left->size : right->size;
    for (int64_t i = 0; i < size; i++)
        if (left->text[i] != right->text[i])
            return left->text[i] == '/' ? -1 : right->text[i] == '/' ? 1 : (int)left->text[i] - (int)right->text[i];
    return (left->size > right->size) - (left->size < right->size);
}

static int pm_is_same_path(const pm_ocfl_string *one, const pm_ocfl_string *other)
{
    return one->size == other->size && memcmp(one->text, other->text, (size_t)one->size) == 0;
}

/* Whether both blocks have the same digests, each once. */
static int pm_has_same_digests(pm_ocfl_block *manifest, pm_ocfl_block *state)
{
    const int64_t count = manifest->digests_count;
    if (state->digests_count != count)
        return 0;
    if (count > 1) {
        qsort(manifest->digests, (size_t)count, sizeof *manifest->digests, pm_compare_digests);
        qsort(state->digests, (size_t)count, sizeof *state->digests, pm_compare_digests);
    }
    for (int64_t i = 0; i < count; i++)
        if (pm_compare_digests(&manifest->digests[i], &state->digests[i]) != 0
            || (i > 0 && pm_compare_digests(&manifest->digests[i - 1], &manifest->digests[i]) == 0))
            return 0;
    return 1;
}

/* Whether a manifest lists exactly these files, each once, with their digests. */
static int pm_lists_files(pm_ocfl_block *manifest, pm_ocfl_string *files, int64_t count)
{
    uint8_t hex[PM_OCFL_HEX];
    if (manifest->paths_count != count)
        return 0;
    if (count > 1) {
        qsort(manifest->paths, (size_t)count, sizeof *manifest->paths, pm_compare_paths);
        qsort(files, (size_t)count, sizeof *files, pm_compare_paths);
    }
    for (int64_t i = 0; i < count; i++) {
        if (!pm_is_same_path(&manifest->paths[i], &files[i]))
            return 0;
        if (files[i].digest == NULL)
            continue;
        pm_put_hex(hex, files[i].digest, 0, PM_OCFL_HEX);
        if (memcmp(manifest->paths[i].digest, hex, PM_OCFL_HEX) != 0)
            return 0;
    }
    return 1;
}

/* Whether all paths of a state are valid, and none is another one or a directory of another one. */
static int pm_is_state(pm_ocfl_block *state)
{
    const int64_t count = state->paths_count;
    if (count > 1)
        qsort(state->paths, (size_t)count, sizeof *state->paths, pm_compare_paths);
    for (int64_t i = 0; i < count; i++) {
        const pm_ocfl_string *path = &state->paths[i], *before = i > 0 ? &state->paths[i - 1] : NULL;
        if (!pm_is_logical_path(path))
            return 0;
        if (before == NULL || before->size > path->size || memcmp(before->text, path->text, (size_t)before->size) != 0)
            continue;
        if (before->size == path->size || path->text[before->size] == '/')
            return 0;
    }
    return 1;
}

/* --- the inventory ------------------------------------------------------------------------------------------- */

static int pm_read_user(pm_json *json, int *advice)
{
    static const char *const names[] = {"name", "address"};
    pm_ocfl_string key, value;
    int64_t count = 0;
    int seen = 0, found;
    if (!pm_read_token(json, '{'))
        return 0;
    while ((found = pm_next_key(json, &count, &key)) > 0) {
        const int index = pm_find_key(&key, names, 2, &seen);
        if (index < 0 || !pm_read_string(json, &value) || (index == 0 && value.size == 0))
            return 0;
        if (index == 1 && !pm_is_uri(&value))
            *advice |= PM_OCFL_ADDRESS_IS_NO_URI;
    }
    if (!(seen & 2))
        *advice |= PM_OCFL_NO_ADDRESS;
    return found == 0 && seen & 1;
}

/* Reads the only version. Returns 1, 0 or PM_NO_MEMORY. */
static int pm_read_version(pm_json *json, pm_ocfl_block *state, int *advice)
{
    static const char *const names[] = {"created", "state", "message", "user"};
    pm_ocfl_string key, value;
    int64_t count = 0;
    int seen = 0, found;
    if (!pm_read_token(json, '{'))
        return 0;
    while ((found = pm_next_key(json, &count, &key)) > 0) {
        int status = 0;
        switch (pm_find_key(&key, names, 4, &seen)) {
        case 0:
            status = pm_read_string(json, &value) && pm_is_date_time(&value);
            break;
        case 1:
            status = pm_read_block(json, state);
            break;
        case 2:
            status = pm_read_string(json, &value);
            break;
        case 3:
            status = pm_read_user(json, advice);
            break;
        default:
            break;
        }
        if (status != 1)
            return status;
    }
    if (!(seen & 4))
        *advice |= PM_OCFL_NO_MESSAGE;
    if (!(seen & 8))
        *advice |= PM_OCFL_NO_USER;
    return found == 0 && (seen & 3) == 3;
}

static int pm_read_versions(pm_json *json, pm_ocfl_block *state, int *advice)
{
    pm_ocfl_string key;
    int64_t count = 0;
    if (!pm_read_token(json, '{') || pm_next_key(json, &count, &key) != 1 || !pm_is_text(&key, "v1"))
        return 0;
    const int status = pm_read_version(json, state, advice);
    return status == 1 ? pm_read_token(json, '}') : status;
}

/* Reads one string whose value is known. */
static int pm_read_text(pm_json *json, const char *text)
{
    pm_ocfl_string value;
    return pm_read_string(json, &value) && pm_is_text(&value, text);
}

/* Reads the whole inventory. Returns 1, 0 or PM_NO_MEMORY. */
static int pm_read_inventory(pm_json *json, pm_ocfl_examination *memory, int minor, pm_ocfl_string *identifier, int *advice)
{
    static const char *const names[] = {"id", "type", "digestAlgorithm", "head", "manifest", "versions"};
    pm_ocfl_string key;
    int64_t count = 0;
    int seen = 0, found;
    if (!pm_read_token(json, '{'))
        return 0;
    while ((found = pm_next_key(json, &count, &key)) > 0) {
        int status = 0;
        switch (pm_find_key(&key, names, 6, &seen)) {
        case 0:
            status = pm_read_string(json, identifier) && identifier->size > 0;
            break;
        case 1:
            status = pm_read_text(json, minor ? "https://ocfl.io/1.1/spec/#inventory" : "https://ocfl.io/1.0/spec/#inventory");
            break;
        case 2:
            status = pm_read_text(json, "sha512");
            break;
        case 3:
            status = pm_read_text(json, "v1");
            break;
        case 4:
            status = pm_read_block(json, &memory->manifest);
            break;
        case 5:
            status = pm_read_versions(json, &memory->state, advice);
            break;
        default:
            break;
        }
        if (status != 1)
            return status;
    }
    pm_skip_space(json);
    return found == 0 && seen == 63 && json->at == json->end;
}

int pm_ocfl_examine(pm_ocfl_examination *memory, const uint8_t *text, int64_t size, int minor, pm_ocfl_string *files, int64_t count,
                    pm_ocfl_string *identifier, int *advice)
{
    pm_json json = {text, text + size};
    *advice = 0;
    if (pm_invalid_utf8(text, size) >= 0)
        return 0;
    const int status = pm_read_inventory(&json, memory, minor, identifier, advice);
    if (status != 1)
        return status;
    if (!pm_is_uri(identifier))
        *advice |= PM_OCFL_ID_IS_NO_URI;
    return pm_has_same_digests(&memory->manifest, &memory->state) && pm_lists_files(&memory->manifest, files, count)
        && pm_is_state(&memory->state);
}

static void pm_free_block(pm_ocfl_block *block)
{
    free((void *)block->digests);
    free(block->paths);
}

void pm_ocfl_free_examination(pm_ocfl_examination *memory)
{
    pm_free_block(&memory->manifest);
    pm_free_block(&memory->state);
}

int pm_ocfl_find_identifier(const uint8_t *text, int64_t size, pm_ocfl_string *identifier)
{
    pm_json json = {text, text + size};
    pm_ocfl_string key;
    if (!pm_read_token(&json, '{'))
        return 0;
    do {
        if (!pm_read_string(&json, &key) || !pm_read_token(&json, ':') || !pm_read_string(&json, identifier))
            return 0;
        if (pm_is_text(&key, "id"))
            return identifier->size > 0 && pm_invalid_utf8(identifier->text, identifier->size) < 0;
        for (int64_t i = 0; i < key.size; i++)
            if (!pm_is_letter(key.text[i]))
                return 0;
    } while (key.size > 0 && pm_read_token(&json, ','));
    return 0;
}
