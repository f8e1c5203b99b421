"""Whole small objects, written and moved into place: one call each, without the lock, for what Python needs a hundred for."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from pressmark._kernels.native.digests cimport algorithm_number, digest_column

__all__ = ["move_object", "write_small_object"]


cdef extern from "small_objects.h":
    ctypedef struct pm_object:
        int64_t count
        int64_t changed
        int64_t *offsets
        const char **files
        uint8_t *data
        uint8_t *digests
    ctypedef struct pm_piece:
        const char *octets
        size_t size
    enum:
        PM_PIECES
    int pm_object_read(pm_object *, const char *, const char *, int64_t, int) nogil
    int pm_object_is_plain(const pm_object *) nogil
    int pm_object_write(const pm_object *, const char *) nogil
    size_t pm_object_inventory_size(const pm_object *, const pm_piece *, size_t) nogil
    size_t pm_object_inventory(const pm_object *, const pm_piece *, const char *, size_t, char *) nogil
    int pm_object_put(const char *, const char *, const char *, size_t) nogil
    void pm_object_hex(const uint8_t *, char *) nogil
    int pm_object_is_there(const char *) nogil
    int pm_object_move(const char *, const char *, const char *, const char *const *, int) nogil
    int pm_small_new(const char *, const uint8_t *, int64_t) nogil


cdef int _written(
    pm_object *found, int sha512, const char *const *folders, const char *const *parts, size_t ending, size_t said,
    const pm_piece *pieces, const char *identifier, size_t octets
) noexcept nogil:
    """Write what was read; return whether that could be done."""
    cdef int64_t offsets[2]
    cdef uint8_t digest[64]
    cdef char *inventory
    cdef char *sidecar
    cdef size_t size
    cdef int i, done = 0
    digest_column(sha512, found.data, found.offsets, found.count, found.digests)
    if not pm_object_is_plain(found):
        return 0
    for i in range(3):
        if pm_small_new(folders[i], NULL, 0):
            return 0
    if not pm_object_write(found, folders[2]):
        return 0
    size = pm_object_inventory_size(found, pieces, octets)
    inventory = <char *>malloc(size + 128 + ending)
    if inventory is NULL:
        return 0
    size = pm_object_inventory(found, pieces, identifier, octets, inventory)
    offsets[0] = 0
    offsets[1] = <int64_t>size
    digest_column(sha512, <const uint8_t *>inventory, offsets, 1, digest)
    sidecar = inventory + size
    pm_object_hex(digest, sidecar)
    for i in range(<int>ending):
        sidecar[128 + i] = parts[2][i]
    # The declaration last: without it nothing is an object.
    done = (
        pm_object_put(folders[1], parts[0], inventory, size)
        and pm_object_put(folders[1], parts[1], sidecar, 128 + ending)
        and pm_object_put(folders[0], parts[0], inventory, size)
        and pm_object_put(folders[0], parts[1], sidecar, 128 + ending)
        and pm_object_put(folders[0], parts[3], parts[4], said)
    )
    free(inventory)
    return done


def write_small_object(
    bytes above not None, bytes name not None, bytes place not None, tuple folders not None, tuple parts not None,
    tuple pieces not None, bytes identifier not None, int64_t device, int flags
):
    """Write version 1 of an OCFL object of a few small files, with SHA-512 (sections 3.1 to 3.7).

    :param above: the directory that has nothing in it but the object's
    :param name: of the object's directory
    :param place: where it is to be in the end: where anything is there, nothing is written
    :param folders: to be made: the object's, its version's and its content's
    :param parts: names of inventory and sidecar, with a slash before each, what is behind the digest in a sidecar; name
        of the declaration, with a slash, and its content
    :param pieces: of the inventory: before and behind the identifier, between a digest and its path in the manifest,
        between a path and the next digest, before the state, then likewise, and the end
    :param identifier: as it stands in the inventory
    :param device: that the files are on; any where it is negative
    :param flags: for opening files
    :return: :data:`None` where it is not for this, and what was made of the folders is for the caller to remove; else
        the latest change of a file, of content or status, in nanoseconds, and of each, in the order of their names:
        name, digest in hex, size
    """
    cdef const char *folder[3]
    cdef const char *part[5]
    cdef pm_piece piece[PM_PIECES]
    cdef const char *here = above
    cdef const char *directory = name
    cdef const char *there = place
    cdef const char *called = identifier
    cdef size_t octets = len(identifier), ending, said
    cdef int sha512 = algorithm_number("sha512")
    cdef int64_t i
    cdef bint done
    cdef bytes one
    cdef char hex[128]
    cdef pm_object *found
    if len(folders) != 3 or len(parts) != 5 or len(pieces) != PM_PIECES:
        raise ValueError("folders, parts or pieces are missing")
    for one in (above, name, place, *folders, parts[0], parts[1], parts[3]):
        if b"\0" in one:
            return None
    if b"/" in name:
        return None
    for i in range(3):
        one = folders[i]
        folder[i] = one
    for i in range(5):
        one = parts[i]
        part[i] = one
    for i in range(PM_PIECES):
        one = pieces[i]
        piece[i].octets = one
        piece[i].size = len(one)
    ending, said = len(parts[2]), len(parts[4])
    found = <pm_object *>malloc(sizeof(pm_object))
    if found is NULL:
        raise MemoryError
    try:
        with nogil:
            done = (
                not pm_object_is_there(there)
                and pm_object_read(found, here, directory, device, flags)
                and _written(found, sha512, folder, part, ending, said, piece, called, octets)
            )
        if not done:
            return None
        files = []
        for i in range(found.count):
            pm_object_hex(&found.digests[64 * i], hex)
            files.append((<bytes>found.files[i], hex[:128].decode("ascii"), found.offsets[i + 1] - found.offsets[i]))
        return found.changed, files
    finally:
        free(found)


def move_object(bytes old not None, bytes base not None, bytes place not None, tuple signs not None):
    """Make the directories above an object's place that are not there, and move the object there.

    :param old: where the object is
    :param base: the directory that ``place`` is relative to
    :param signs: begins with a slash each: what makes a directory an object's, in which no other has its place
    :return: whether it was moved; where not, nobody knows why, and directories may have been made
    """
    cdef const char *names[8]
    cdef const char *here = old
    cdef const char *above = base
    cdef const char *there = place
    cdef int count = len(signs), i
    cdef bytes sign
    cdef bint done
    if count > 8 or b"\0" in old or b"\0" in base or b"\0" in place:
        return False
    for i in range(count):
        sign = signs[i]
        names[i] = sign
    with nogil:
        done = pm_object_move(here, above, there, names, count)
    return done
