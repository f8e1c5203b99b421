# Runs of items and nulls. arrow.pyx includes this file.


cdef class Chunk:
    """An immutable run of items and nulls."""

    cdef pm_chunk *chunk
    cdef int utf8  # -1: unknown

    def __dealloc__(self):
        cdef pm_pending pending
        PM_SAVE_EXCEPTION(pending)
        with nogil:
            pm_drop_chunk(self.chunk)
        PM_RESTORE_EXCEPTION(pending)

    @classmethod
    def from_column(cls, ByteColumn column not None, nulls):
        """Return the items of ``column``, of which those at the indices ``nulls`` are null."""
        cdef pm_chunk without_nulls
        cdef pm_chunk *chunk = NULL
        cdef pm_column copy
        cdef pm_errors errors
        cdef pm_error found
        cdef int64_t index, number = 0
        memset(&without_nulls, 0, sizeof(without_nulls))
        memset(&copy, 0, sizeof(copy))
        errors.count = errors.capacity = len(nulls)
        errors.list = <pm_error *>calloc(errors.count + 1, sizeof(pm_error))
        if errors.list == NULL:
            raise MemoryError
        try:
            for index in nulls:
                if not 0 <= index < column.column.count:
                    raise IndexError(index)
                errors.list[number].index = index
                number += 1
            if pm_copy_items(&column.column, 0, column.column.count, &copy) == 0:
                chunk = pm_result_chunk(&copy, &without_nulls, &errors, 1, &found)
        finally:
            free(errors.list)
        if chunk == NULL:
            pm_free_column(&copy)
            raise MemoryError
        return _wrap(chunk)

    def __len__(self):
        return self.chunk.column.count

    @property
    def null_count(self):
        return self.chunk.null_count

    @property
    def size(self):
        """The number of bytes of all items."""
        return self.chunk.column.bytes.size

    def is_utf8(self):
        """Return whether every item is UTF-8."""
        if self.utf8 < 0:
            with nogil:
                self.utf8 = pm_chunk_is_utf8(self.chunk)
        return self.utf8 == 1

    def item(self, Py_ssize_t index):
        """Return the item at ``index``, which must exist, as ``bytes``, or None."""
        cdef pm_column *column = &self.chunk.column
        if self.chunk.validity != NULL and not pm_bit(self.chunk.validity, index):
            return None
        return PyBytes_FromStringAndSize(
            <char *>column.bytes.data + column.offsets[index], column.offsets[index + 1] - column.offsets[index]
        )

    def to_list(self):
        """Return items as ``str`` and nulls as None; bytes that are not UTF-8 become surrogates of ``os.fsdecode``."""
        cdef pm_column *column = &self.chunk.column
        cdef list texts = PyList_New(column.count)
        cdef object text
        cdef Py_ssize_t index
        cdef int64_t length
        cdef const uint8_t *item
        for index in range(column.count):
            item = column.bytes.data + column.offsets[index]
            length = column.offsets[index + 1] - column.offsets[index]
            if self.chunk.validity != NULL and not pm_bit(self.chunk.validity, index):
                text = None
            elif pm_is_ascii(item, length):
                text = PyUnicode_New(length, 127)
                # The empty string is shared and must not be written to.
                if length > 0:
                    memcpy(PyUnicode_DATA(text), item, length)
            else:
                text = PyUnicode_DecodeUTF8(<const char *>item, length, "surrogateescape")
            Py_INCREF(text)
            PyList_SET_ITEM(texts, index, text)
        return texts

    def byte_column(self, Py_ssize_t start, Py_ssize_t items, int64_t size):
        """Return a copy of the items from ``start``, which must exist, and the indices of nulls in the copy.

        :param items: the maximum number of items
        :param size: the maximum number of bytes; a single item may have more
        """
        cdef ByteColumn packed = ByteColumn.__new__(ByteColumn)
        cdef pm_column *column = &self.chunk.column
        cdef Py_ssize_t index, stop = start + 1, end = min(column.count, start + items)
        cdef list nulls = []
        while stop < end and column.offsets[stop + 1] - column.offsets[start] <= size:
            stop += 1
        if pm_copy_items(column, start, stop, &packed.column) < 0:
            raise MemoryError
        if self.chunk.validity != NULL:
            for index in range(start, stop):
                if not pm_bit(self.chunk.validity, index):
                    nulls.append(index - start)
        return packed, nulls


cdef Chunk _wrap(pm_chunk *chunk):
    cdef Chunk wrapped = Chunk.__new__(Chunk)
    wrapped.chunk = chunk
    wrapped.utf8 = -1
    return wrapped
