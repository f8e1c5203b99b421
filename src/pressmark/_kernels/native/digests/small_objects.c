#include "small_objects.h"

#include <stdlib.h>
#include <string.h>

#include "../shared/clock.h"
#include "../shared/text.h"

#define CONTENT "/v1/content"
#define INVENTORY "/inventory.json"
#define SIDECAR "/inventory.json.sha512"
#define HEX 128 /* digits of a digest */
#define SIDECAR_SIZE (HEX + 16)

static uint8_t *put(uint8_t *to, const char *text)
{
    const size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

/* Writes a block of an inventory with the path of each file after its digest. */
static uint8_t *put_files(uint8_t *to, const pm_small_tree *tree, const char *indent, const char *above)
{
    to = put(to, "{\n");
    for (int64_t i = 0; i < tree->count; i++) {
        to = put(put(to, indent), "  \"");
        pm_put_hex(to, tree->digests + 64 * i, 0, HEX);
        to = put(put(put(to + HEX, "\": [\""), above), tree->files[i]);
        to = put(to, i + 1 < tree->count ? "\"],\n" : "\"]\n");
    }
    return put(put(to, indent), "}");
}

static size_t inventory_room(const pm_object_texts *texts, const pm_small_object *object, const pm_small_tree *tree)
{
    size_t room = strlen(texts->before) + strlen(texts->manifest) + strlen(texts->state) + strlen(texts->after);
    room += strlen(object->identifier) + 64;
    for (int64_t i = 0; i < tree->count; i++) room += 2 * (HEX + 32 + strlen(tree->files[i]));
    return room;
}

static uint8_t *put_inventory(uint8_t *to, const pm_object_texts *texts, const pm_small_object *object, const pm_small_tree *tree)
{
    to = put(put(put(to, texts->before), object->identifier), texts->manifest);
    to = put(put_files(to, tree, "  ", "v1/content/"), texts->state);
    return put(put_files(to, tree, "      ", ""), texts->after);
}

/* Writes the new files and directories of an object, the content first, the declaration last. */
static int write_object(const pm_object_texts *texts, const pm_small_object *object, const pm_small_tree *tree,
                        const uint8_t *inventory, int64_t size, const uint8_t *digest)
{
    static const char *const tops[] = {"", "/v1", CONTENT};
    char path[PM_TREE_PATH];
    uint8_t sidecar[SIDECAR_SIZE];
    const size_t length = strlen(object->top);
    char *end = path + length;
    if (length + sizeof CONTENT + sizeof SIDECAR + strlen(texts->name) + 1 > sizeof path) return 0;
    memcpy(path, object->top, length);
    for (int i = 0; i < 3; i++) {
        strcpy(end, tops[i]);
        if (pm_small_new(path, NULL, 0)) return 0;
    }
    if (!pm_small_tree_write(tree, path)) return 0;
    pm_put_hex(sidecar, digest, 0, HEX);
    put(sidecar + HEX, " inventory.json\n");
    for (int i = 2; i > 0; i--) {
        const size_t inner = i == 2 ? 3 : 0;
        memcpy(end, "/v1", inner);
        strcpy(end + inner, INVENTORY);
        if (pm_small_new(path, inventory, size)) return 0;
        strcpy(end + inner, SIDECAR);
        if (pm_small_new(path, sidecar, SIDECAR_SIZE)) return 0;
    }
    *end = '/';
    strcpy(end + 1, texts->name);
    return pm_small_new(path, (const uint8_t *)texts->declaration, (int64_t)strlen(texts->declaration)) == 0;
}

/* Reads the trees of objects until the batch is full or PM_TURN ends, and returns how many objects were tried. */
static int read_objects(const pm_object_options *options, pm_small_object *objects, int count, pm_object_batch *batch)
{
    const int64_t latest = pm_now() + PM_TURN;
    int tried = 0;
    batch->trees = batch->files = batch->offsets[0] = 0;
    for (; tried < count && batch->trees < PM_OBJECTS && batch->offsets[batch->files] <= PM_OBJECTS_BYTES
           && (!tried || pm_now() < latest);
         tried++) {
        pm_small_object *object = &objects[tried];
        pm_small_tree *tree = &batch->tree[batch->trees];
        size_t longest;
        object->tree = -1;
        tree->offsets = batch->offsets + batch->files;
        tree->data = batch->data;
        tree->digests = batch->digests + 64 * batch->files;
        if (!pm_is_free(object->place)
            || !pm_small_tree_read(tree, object->above, object->name, options->devices, options->flags))
            continue;
        longest = sizeof CONTENT + pm_small_tree_longest(tree);
        if (longest < sizeof "/v1" SIDECAR) longest = sizeof "/v1" SIDECAR;
        if (strlen(object->place) + longest >= options->limit) continue;
        object->tree = batch->trees++;
        batch->files += tree->count;
    }
    return tried;
}

int pm_write_small_objects(const pm_object_options *options, pm_small_object *objects, int count, pm_object_batch *batch)
{
    const int tried = read_objects(options, objects, count, batch);
    int64_t offsets[PM_OBJECTS + 1];
    uint8_t digests[PM_OBJECTS * 64];
    uint8_t *text, *end;
    size_t room = 1;
    pm_digest_column(options->level, PM_SHA512, batch->data, batch->offsets, batch->files, batch->digests);
    for (int i = 0; i < tried; i++) {
        if (objects[i].tree < 0) continue;
        room += inventory_room(options->texts, &objects[i], &batch->tree[objects[i].tree]);
    }
    if (!(text = end = malloc(room))) return -1;
    offsets[0] = 0;
    for (int i = 0; i < tried; i++) {
        if (objects[i].tree < 0) continue;
        end = put_inventory(end, options->texts, &objects[i], &batch->tree[objects[i].tree]);
        offsets[objects[i].tree + 1] = end - text;
    }
    pm_digest_column(options->level, PM_SHA512, text, offsets, batch->trees, digests);
    for (int i = 0; i < tried; i++) {
        const int64_t number = objects[i].tree;
        const pm_small_tree *tree = &batch->tree[number < 0 ? 0 : number];
        if (number < 0) continue;
        if (!pm_small_tree_is_plain(tree)
            || !write_object(options->texts, &objects[i], tree, text + offsets[number], offsets[number + 1] - offsets[number],
                             digests + 64 * number))
            objects[i].tree = -1;
    }
    free(text);
    return tried;
}
